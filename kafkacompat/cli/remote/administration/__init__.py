"""The work of the commands that administer a cluster: requests, and their results as rows."""
