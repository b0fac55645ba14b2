"""What Spark runs with: Java, jars, Spark's classes, a broker for tests. Imports no pyspark."""
