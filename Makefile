# One place for every command. Stamp files in .venv make repeated calls instant.
PYTHON ?= python3
ROWS ?=
SECONDS ?=
BROKER ?= kafkacompat
RELEASE ?=
ARGS ?=
SEEDS ?= 1000
SEED ?=

VENV := .venv
BIN := $(VENV)/bin
PACKAGING := setup.cfg pyproject.toml setup.py wire/record_walk.py wire/record_walk.pxd
PYTEST := $(BIN)/python -m pytest -q
# Unit tests use all cores. Tests with real clients run two groups at a time (compat_tests/scheduling.py), as one may start several JVMs.
UNIT_WORKERS := -n auto --dist loadfile
TWO_WORKERS := -n 2
POMS := compat_tests/java/pom.xml compat_tests/frameworks/pom.xml $(sort $(wildcard compat_tests/java/*/pom.xml))
# What an installed copy has too. A Python that may not write bytecode (PYTHONDONTWRITEBYTECODE) would compile it at each start.
MODULES := kafkacompat wire handlers storage spark_integration
SOURCES := kafkacompat wire handlers storage tests compat_tests bench spark_integration examples
EXTRAS := test,lint,spark,demo,bench
# All that the pipelines write to can be had for it; `make spark` tries what pip takes of itself, and older ones, too.
PYSPARK := pyspark==4.0.0
# What asks the operating system, by its portable calls too; the tests of storage/ try both ways by themselves, and all others use files
# in memory.
ON_REAL_FILES := $(addprefix tests/kafkacompat/,test_broker.py test_broker_takeover.py \
	server/test_connection.py server/test_connection_bounds.py server/test_outgoing.py server/test_transport.py \
	partitions/test_fetching.py partitions/test_partition.py upkeep/test_scrubbing.py \
	cli/test_commands.py cli/test_log.py cli/test_metadata.py cli/test_metadata_scram.py)

.PHONY: help run check test format coverage lint crash simulate history chaos demo cluster-demo bench tenants spark spark-compare spark-kills compare conformance packages quickstarts suites docs tools migrate frameworks browser matrix nasty clean

help:
	@echo "For users"
	@echo "  make run            install into .venv and serve on 127.0.0.1:9092, data in ./kafkacompat-data [ARGS='--port 9093']"
	@echo "  make demo           send 336,776 flights through confluent-kafka, kafka-python and Spark"
	@echo "  make cluster-demo   kill the leader under load in a cluster of three, and count lost records (half a minute; needs a JDK)"
	@echo "  make clean          remove .venv, fetched jars and caches (not kafkacompat-data)"
	@echo "For maintainers, every day"
	@echo "  make check          run the linters and the unit tests; needs neither a JDK nor Maven (about three minutes)"
	@echo "  make test           run make check, then real clients, Kafka's Java tools and Spark against the broker"
	@echo "  make lint           run ruff, mypy --strict and the checks of the layers"
	@echo "  make format         let ruff correct and format the sources"
	@echo "  make coverage       show which lines the unit tests run (pages in build/coverage)"
	@echo "For maintainers, after larger changes: what make test leaves out or only samples"
	@echo "  make crash          crash at every file operation of random runs, and kill a broker under load 50 times"
	@echo "  make simulate       simulate clusters with faults on a virtual clock [SEEDS=1000; SEED=7: this seed only]"
	@echo "  make history        kill clients and the broker 20 times, and check everything that the clients saw"
	@echo "  make chaos          kill, stop, cut off and fill three brokers and ZooKeeper, and check what clients saw"
	@echo "                      [SECONDS=300: length of each scenario; BROKER=kafka: on Apache Kafka; ARGS='--scenario cuts --seed 1']"
	@echo "  make spark          run Spark in each of its modes [BROKER=kafka: on Apache Kafka; RELEASE=3.5.8: with this Spark]"
	@echo "  make spark-compare  run Spark on this broker and on Apache Kafka, and compare its results [RELEASE=3.5.8]"
	@echo "  make spark-kills    kill each pipeline 20 times, and compare its output record by record"
	@echo "  make tools          run the command line tools of Kafka 4.3.1, 2.8.2, 0.11.0.3 and 0.8.2.2 [BROKER=kafka: on Apache Kafka]"
	@echo "  make frameworks     run jobs of Streams, Connect, Flink, Spring Kafka, Debezium, Faust and others [BROKER=kafka: on Apache Kafka]"
	@echo "  make browser        use the web page in Chromium, and make the screenshots of docs/WEB.md (needs Debian's chromium)"
	@echo "  make suites         run the integration tests of kafka-python, aiokafka and PySpark on test brokers [ARGS='--aiokafka CLONE --pyspark CLONE']"
	@echo "  make migrate        take over data directories of Kafka 0.11.0.3, 2.8.2 and 4.3.1, and give them back"
	@echo "  make compare        send the same raw requests to this broker and to Apache Kafka, and compare the responses"
	@echo "  make packages       build the wheel and the source package, install each elsewhere, and serve"
	@echo "  make conformance    give 100,000 messages to Kafka 4.3.1, Kafka 3.9.1 and kio, and compare the bytes"
	@echo "  make quickstarts    run the quickstarts for Java, Node.js, Go and Spark with clients of the registries"
	@echo "For maintainers, for the documentation"
	@echo "  make docs           build the documentation as a site in build/site, and check its links"
	@echo "  make bench          measure this broker and Apache Kafka under the same loads, in turn [ROWS='produce fetch']"
	@echo "  make matrix         run clients of every age on this broker and on Apache Kafka [ROWS='java-0.9 kafkajs'; ARGS=--instances]"
	@echo "  make nasty          let clients of every age, and Spark, read nasty topics [ROWS='java-4 spark'; ARGS='--topics empty_batch']"
	@echo "  make tenants        let a noisy neighbour loose beside nine quiet instances, and measure these [ARGS='--seconds 8']"

run: $(VENV)/.bytecode
	@$(BIN)/kafkacompat serve $(ARGS)

check: lint
	@$(PYTEST) $(UNIT_WORKERS) tests

test: check $(VENV)/.jars
	@KAFKACOMPAT_PORTABLE=1 $(PYTEST) $(ON_REAL_FILES)
	@$(PYTEST) $(TWO_WORKERS) compat_tests

crash: $(VENV)/.development
	@$(BIN)/python -m tests.crash
	@$(BIN)/python -m compat_tests.kills

simulate: $(VENV)/.development
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

lint: $(VENV)/.development
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.development
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

# test_hostile_bytes.py counts the lines that run and the memory that they take, to which coverage adds its own.
coverage: $(VENV)/.development
	@$(PYTEST) $(UNIT_WORKERS) --cov --cov-report= --ignore=tests/wire/test_hostile_bytes.py tests
	@$(BIN)/coverage html -q
	@$(BIN)/coverage report --skip-covered --sort=-miss | sed -n '1,22p;/^TOTAL/p'
	@echo "The 20 files with the most lines that no unit test runs; all files are in build/coverage/index.html"

history: $(VENV)/.development
	@$(BIN)/kafkacompat verify history

chaos: $(VENV)/.jars
	@$(BIN)/python -m compat_tests.chaos --broker=$(BROKER) $(addprefix --seconds=,$(SECONDS)) $(ARGS)

demo: $(VENV)/.jars
	@$(BIN)/python -m spark_integration.demo

cluster-demo: $(VENV)/.jars
	@$(BIN)/python -m compat_tests.failover

bench: $(VENV)/.conformance
	@$(BIN)/python -m bench $(ROWS)

tenants: $(VENV)/.development
	@$(BIN)/python -m compat_tests.tenants $(ARGS)

spark: $(VENV)/.jars
	@$(BIN)/python -m compat_tests.spark --broker=$(BROKER) $(addprefix --release=,$(RELEASE))

spark-compare: $(VENV)/.jars
	@$(BIN)/python -m compat_tests.spark --compare $(addprefix --release=,$(RELEASE))

spark-kills: $(VENV)/.jars
	@for package in delta iceberg; do $(BIN)/kafkacompat spark prepare --package $$package || exit; done
	@COMPAT_TESTS_KILLS=20 $(BIN)/python -m compat_tests.spark -k test_killed -rA

compare: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests/test_same_answers.py
	@$(BIN)/python -m pytest compat_tests -m compare

conformance: $(VENV)/.conformance
	@$(BIN)/python -m compat_tests.conformance

packages: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests -m packages

quickstarts: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests/test_start_pages.py -m quickstarts

docs: $(VENV)/.site
	@$(BIN)/python -m compat_tests.documentation

tools: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests -m tools --broker=$(BROKER)

suites: $(VENV)/.development
	@$(BIN)/python -m compat_tests.suites $(ARGS)

migrate: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests/test_takeover*.py compat_tests/test_*_groups_in_the_log.py -m "migration or not migration"

frameworks: $(VENV)/.jars
	@$(BIN)/python -m pytest compat_tests/frameworks -m frameworks --broker=$(BROKER)

browser: $(VENV)/.development
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[browser]'
	@COMPAT_TESTS_SCREENSHOTS=docs/web $(BIN)/python -m pytest compat_tests/browser -m browser

matrix: $(VENV)/.jars
	@$(BIN)/python -m compat_tests.matrix $(ROWS) $(ARGS)

nasty: $(VENV)/.jars
	@$(BIN)/python -m compat_tests.nasty $(ROWS) $(ARGS)

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info wire/compiled_record_walk.*

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

$(VENV)/.site: $(PACKAGING) | $(BIN)/python
	@echo "Installing MkDocs into $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	@touch $@ $(VENV)/.run

$(VENV)/.jars: $(POMS) spark_integration/runtime/packages.py | $(VENV)/.development
	@echo "Fetching the jars of Apache Kafka and Spark's Kafka source by Maven, and starting Spark once to keep its classes ..."
	@$(BIN)/python -m spark_integration.runtime.maven $(filter %.xml,$^)
	@$(BIN)/kafkacompat spark prepare
	@echo "Starting Apache Kafka once, to keep its classes for the JVMs of the tests ..."
	@$(BIN)/python -m compat_tests.class_data
	@touch $@
