# One place for every command. Stamp files in .venv make repeated calls instant.
PYTHON ?= python3
ARGS ?=
ROWS ?=
BROKER ?= kafkacompat
RELEASE ?=

VENV := .venv
BIN := $(VENV)/bin
PACKAGING := setup.cfg pyproject.toml
SOURCES := kafkacompat wire handlers storage tests compat_tests bench spark_integration
# What an installed copy has too. A Python that may not write bytecode (PYTHONDONTWRITEBYTECODE) would compile it at each start.
MODULES := kafkacompat wire handlers storage spark_integration
EXTRAS := test,lint,spark,demo,bench
# All that the pipelines write to can be had for it; `make spark` tries what pip takes of itself, and older ones, too.
PYSPARK := pyspark==4.0.0
# What asks the operating system, by its portable calls too; the tests of storage/ try both ways by themselves.
ON_REAL_FILES := $(addprefix tests/kafkacompat/,test_broker.py test_broker_takeover.py server partitions upkeep cli)

.PHONY: help run test lint crash history demo bench spark spark-compare spark-kills compare conformance tools migrate frameworks matrix clean

help:
	@echo "make run      install into .venv and serve on 127.0.0.1:9092 (data in ./kafkacompat-data) [ARGS='--port 9093']"
	@echo "make test     lint, unit tests, real clients, Kafka's Java tools, Spark; not what tools, migrate, frameworks and crash do"
	@echo "make crash    crash at every operation of the file system in random lives, and kill a broker under load 50 times"
	@echo "make history  clients at work and killed, the broker killed 20 times, and all that they saw checked"
	@echo "make demo     336,776 flights through confluent-kafka, kafka-python and Spark"
	@echo "make bench    the same loads on this broker and on Apache Kafka, in turn [ROWS='produce fetch']"
	@echo "make lint     ruff, mypy --strict, layer contracts"
	@echo "make spark    Spark in every mode it has [BROKER=kafka: on Apache Kafka instead; RELEASE=3.5.8: that one of Spark]"
	@echo "make spark-compare  the same on this broker and on Apache Kafka, what Spark saw compared [RELEASE=3.5.8]"
	@echo "make spark-kills  every pipeline killed twenty times, and what it left compared record by record"
	@echo "make compare  the same raw requests to this broker and to Apache Kafka, answers compared"
	@echo "make conformance  100,000 messages of all versions to Kafka 4.3.1, 3.9.1 and kio, bytes compared"
	@echo "make tools    the command line tools of Kafka 4.3.1, 2.8.2 and 0.11.0.3 [BROKER=kafka: on Apache Kafka instead]"
	@echo "make migrate  on the data directories of Kafka 0.11.0.3, 2.8.2 and 4.3.1 and back"
	@echo "make frameworks  Streams, Connect, MirrorMaker, Karapace, Faust and Quix at work [BROKER=kafka: on Apache Kafka instead]"
	@echo "make matrix   real clients of every age on this broker and on Apache Kafka, into docs/ [ROWS='java-0.9 kafkajs']"
	@echo "make clean    remove .venv, fetched jars and caches (not kafkacompat-data)"

run: $(VENV)/.bytecode
	@$(BIN)/kafkacompat serve $(ARGS)

test: lint $(VENV)/.jars
	@KAFKACOMPAT_PORTABLE=1 $(BIN)/python -m pytest -q $(ON_REAL_FILES)
	@$(BIN)/python -m pytest -q -n auto --dist loadfile tests
	@$(BIN)/python -m pytest compat_tests

crash: $(VENV)/.development
	@$(BIN)/python -m tests.crash
	@$(BIN)/python -m compat_tests.kills

lint: $(VENV)/.development
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports

history: $(VENV)/.development
	@$(BIN)/kafkacompat verify history

demo: $(VENV)/.jars
	@$(BIN)/python -m spark_integration.demo

bench: $(VENV)/.conformance
	@$(BIN)/python -m bench $(ROWS)

spark: $(VENV)/.jars
	@$(BIN)/python -m compat_tests.spark --broker=$(BROKER) $(addprefix --release=,$(RELEASE))

spark-compare: $(VENV)/.jars
	@$(BIN)/python -m compat_tests.spark --compare $(addprefix --release=,$(RELEASE))

spark-kills: $(VENV)/.jars
	@for package in delta iceberg; do $(BIN)/kafkacompat spark prepare --package $$package || exit; done
	@COMPAT_TESTS_KILLS=20 $(BIN)/python -m compat_tests.spark -k test_killed -rA

compare: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests/test_same_answers.py

conformance: $(VENV)/.conformance
	@$(BIN)/python -m compat_tests.conformance

tools: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests -m tools --broker=$(BROKER)

migrate: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests/test_takeover.py compat_tests/test_*_groups_in_the_log.py -m "migration or not migration"

frameworks: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests/frameworks -m frameworks --broker=$(BROKER)

matrix: $(VENV)/.jars
	@$(BIN)/python -m compat_tests.matrix $(ROWS)

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info

$(BIN)/python:
	@echo "Creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(PACKAGING) | $(BIN)/python
	@echo "Installing kafkacompat into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.bytecode: $(shell find $(MODULES) -name '*.py') | $(VENV)/.run
	@$(BIN)/python -m compileall -q $(MODULES)
	@touch $@

$(VENV)/.development: $(PACKAGING) | $(BIN)/python
	@echo "Installing kafkacompat with clients, linters and Spark into $(VENV) (a minute or two) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[$(EXTRAS)]' $(PYSPARK)
	@touch $@ $(VENV)/.run

$(VENV)/.conformance: $(VENV)/.jars
	@echo "Installing kio into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[conformance]'
	@touch $@

$(VENV)/.jars: compat_tests/java/pom.xml compat_tests/frameworks/pom.xml compat_tests/java/kafka_3_9/pom.xml compat_tests/java/tools_2_8/pom.xml compat_tests/java/tools_0_11/pom.xml spark_integration/runtime/packages.py | $(VENV)/.development
	@echo "Fetching the jars of Apache Kafka and Spark's Kafka source by Maven, and starting Spark once to keep its classes ..."
	@$(BIN)/python -m spark_integration.runtime.maven $(filter %.xml,$^)
	@$(BIN)/kafkacompat spark prepare
	@echo "Starting Apache Kafka once, to keep its classes for the JVMs of the tests ..."
	@$(BIN)/python -m compat_tests.class_data
	@touch $@
