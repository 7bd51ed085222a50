# Every target does its own set-up: a fresh clone needs python3 (3.11+, with venv) and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DATA   ?= data
LISTEN ?= 127.0.0.1:9092
SECONDS ?= 60
SEED   ?= 1
KILLS  ?= 20
FAULTS ?= 50
RECORDS ?= 10000000
ROUNDS ?= 20
GPUS   ?= 64
SEEDS  ?= 1000
REQUESTS ?= 11000
INPUTS ?= 100000
HOSTS  ?= 250
SCRAPES ?= 2880
UV     := uv==0.13.8
CORES  := $(shell getconf _NPROCESSORS_ONLN)

.PHONY: run demo lock test test-lowest coverage test-cluster test-long test-upgrade test-spark test-observability check format bench bench-quick chaos chaos-cluster failover compat-cluster compat-diff compat-rights chaos-telemetry telemetry-day chaos-spark spark-cluster fuzz fuzz-login sslyze sim web web-check screenshots test-browser clean help

help: ## Show the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

$(VENV)/.run: pyproject.toml
	@echo "Setting up $(VENV) (once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.telemetry: $(VENV)/.run
	@$(BIN)/python -c 'import sys; from barnabas.telemetry.jobs.spark_session import java_problem; sys.exit(java_problem())'
	@echo "Installing Spark and its company into $(VENV) (once, about 800 MB) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[telemetry]'
	@touch $@

# Development uses the versions in requirements/dev.txt, which `make lock` writes; users get the ranges in pyproject.toml.
$(VENV)/.dev: pyproject.toml requirements/dev.txt
	@echo "Installing the package and the test tools into $(VENV) (once) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(UV)'
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --requirement requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(VENV)/.run $@

lock: $(VENV)/.dev ## Write requirements/dev.txt anew, with the newest versions that pyproject.toml allows.
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev --generate-hashes --no-annotate --no-emit-index-url --no-header --output-file requirements/dev.txt pyproject.toml

run: $(VENV)/.run ## Start a broker on 127.0.0.1:9092, its data under ./data.
	@exec $(BIN)/barnabas serve --listen $(LISTEN) --data $(DATA) --hints

demo: $(VENV)/.telemetry ## Show the telemetry pipeline: broker, recording, fleet, tables, report.html (needs Java).
	@exec $(BIN)/barnabas telemetry demo --gpus $(GPUS) $(ARGS)

# Files of tests run side by side: what computes, then what waits for other processes (more workers fill the gaps, the longest
# files first), then Spark's.
PURE    := tests/unit tests/property tests/simulation tests/style
WAITING := tests/chaos tests/cli tests/compat
WAITERS := $(shell expr 2 \* $(CORES))

test: $(VENV)/.dev ## Run the tests.
	@$(BIN)/python -m pytest -q -n $(CORES) --dist loadfile $(PURE)
	@$(BIN)/python -m pytest -q -n $(WAITERS) --dist loadfile --no-loadscope-reorder $(WAITING)
	@$(BIN)/python -m pytest -q -n $(CORES) --dist loadfile --no-loadscope-reorder $(PURE:%=--ignore %) $(WAITING:%=--ignore %)

test-cluster: $(VENV)/.dev ## The long tests of clusters: their commands, every mutant of the simulation (minutes).
	@$(BIN)/python -m pytest -q tests/cli/test_cluster.py tests/cli/test_outage.py tests/simulation -m slow

test-long: $(VENV)/.dev ## Property tests with all of their examples, connections with 2,000 (minutes).
	@LONG_TESTS=1 $(BIN)/python -m pytest -q -n $(CORES) --dist loadfile tests/property tests/unit/protocol tests/unit/spark

test-upgrade: $(VENV)/.dev ## Upgrade and roll back a cluster under load, from release 0.1.0 (built from git) and back (minutes).
	@$(BIN)/python -m pytest -q tests/chaos/cluster/test_upgrade.py -m slow

# confluent-kafka and the like at the lowest versions that pyproject.toml allows, in an environment of their own.
LOWEST := build/lowest
test-lowest: $(VENV)/.dev ## Run unit, compat and CLI tests with the lowest versions that pyproject.toml allows (minutes).
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[dev]'
	@$(LOWEST)/bin/python -m pytest -q -n $(CORES) --dist loadfile tests/unit tests/property
	@$(LOWEST)/bin/python -m pytest -q -n $(WAITERS) --dist loadfile --no-loadscope-reorder tests/cli tests/compat

coverage: $(VENV)/.dev ## Measure how much of the package the tests without other processes run; writes build/coverage (minutes).
	@$(BIN)/python -m pytest -q -n $(CORES) --dist loadfile --cov=barnabas --cov-report=term:skip-covered --cov-report=html:build/coverage $(PURE)

check: $(VENV)/.dev ## Format, lint, types, layers and tests.
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(MAKE) test

chaos: $(VENV)/.dev ## Kill brokers, cut their power, fill their disks (minutes).
	@CHAOS_KILLS=20 CHAOS_POWER_CUTS=20 CHAOS_RELOADS=20 CHAOS_RECONNECTS=2000 $(BIN)/python -m pytest -q tests/chaos -m chaos --ignore tests/chaos/test_telemetry.py

chaos-cluster: $(VENV)/.dev ## Storm on three brokers: FAULTS=n of each class, at least RECORDS=n acknowledged; SECURE=1 with TLS, SASL and ACLs (root; an hour).
	@$(BIN)/python -m tests.support.clusters.cluster_storm --faults $(FAULTS) --seed $(SEED) --records $(RECORDS) $(SECURE:1=--secure) --report build/chaos-cluster$(SECURE:1=-secure).json

failover: $(VENV)/.dev ## Measure how long clients wait when a leader or the controller goes away, ROUNDS=n times.
	@$(BIN)/python -m tests.support.clusters.cluster_failover --rounds $(ROUNDS) --report build/failover.json

compat-cluster: $(VENV)/.dev ## Real clients, groups and transactions against three brokers (minutes).
	@BARNABAS_BROKERS=3 $(BIN)/python -m pytest -q tests/compat tests/cli tests/chaos/test_exactly_once.py tests/chaos/test_exactly_once_rules.py

compat-rights: $(VENV)/.dev ## Compare what callers are denied with Apache Kafka, API by API in every version; writes build/rights-matrix.md (needs Java; minutes).
	@$(BIN)/python -m pytest -q tests/compat/test_acl_matrix.py -m slow

compat-diff: $(VENV)/.dev ## Compare answers with Apache Kafka's: REQUESTS=n by chance (needs Java; minutes).
	@$(BIN)/python -m tools.compat_diff --seed $(SEED) --random $(REQUESTS) $(ARGS)

chaos-telemetry: $(VENV)/.dev ## Kill driver, workers and broker of the telemetry pipeline KILLS=n times (needs Java).
	@CHAOS_KILLS=$(KILLS) CHAOS_SEED=$(SEED) $(BIN)/python -m pytest -q tests/chaos/test_telemetry.py -m chaos

telemetry-day: $(VENV)/.dev ## Scrape HOSTS=n nodes of 8 cards SCRAPES=n times while a third of their exporters misbehave; check the tables (needs Java).
	@$(BIN)/python -m tests.support.pipelines.exporter_day --hosts $(HOSTS) --rounds $(SCRAPES)

chaos-spark: $(VENV)/.dev ## Kill driver, JVM, executors, workers and brokers of a Spark sink KILLS=n times, on one broker and on three (needs Java).
	@$(BIN)/python -m tests.support.pipelines.spark_storm --kills $(KILLS) --seed $(SEED) --brokers 1 --report build/chaos-spark-1.json
	@$(BIN)/python -m tests.support.pipelines.spark_storm --kills $(KILLS) --seed $(SEED) --brokers 3 --report build/chaos-spark-3.json

spark-cluster: $(VENV)/.dev ## Run the telemetry pipeline on a standalone Spark cluster (needs Java).
	@$(BIN)/python -m pytest -q tests/spark/test_standalone.py -m slow

test-spark: $(VENV)/.dev ## The long tests with Spark: its JVM connector, real-time mode, the docs' examples (minutes).
	@$(BIN)/python -m pytest -q tests/compat tests/spark -m "slow and not chaos" --ignore tests/compat/test_acl_matrix.py

test-observability: $(VENV)/.dev ## Alerts, dashboards, lag and metrics of clients with a real Prometheus, brokers that break and the exporter (15 minutes).
	@$(BIN)/python -m pytest -q tests/compat/test_prometheus.py tests/compat/test_alerts_live.py tests/compat/test_client_metrics.py tests/cli/test_exporter_truth.py -m slow -o faulthandler_timeout=600

fuzz-login: $(VENV)/.dev ## Send garbage to listeners with TLS and SASL before any login, INPUTS=n times (2,000 a second on a quiet machine).
	@$(BIN)/python -m tools.fuzz_login --inputs $(INPUTS) --seed $(SEED)

# sslyze has an environment of its own: nothing else needs what it brings.
SSLYZE := build/sslyze
sslyze: $(VENV)/.dev ## Have sslyze scan the TLS listeners of a broker (a minute).
	@test -x $(SSLYZE)/bin/python || $(PYTHON) -m venv $(SSLYZE)
	@$(BIN)/uv pip install --quiet --python $(SSLYZE)/bin/python sslyze==6.3.1
	@$(BIN)/python -m tools.check_tls --sslyze $(SSLYZE)/bin/sslyze

fuzz: $(VENV)/.dev ## Throw broken requests at the decoders and at a running broker (minutes).
	@$(BIN)/python -m tools.fuzz_requests --seconds $(SECONDS) --seed $(SEED)
	@$(BIN)/python -m tools.fuzz_requests --live --seconds $(SECONDS) --seed $(SEED)

sim: $(VENV)/.run ## Simulate a broker, and a cluster, with their clients under faults, SEEDS=n times each (about 2 seeds a second and core).
	@$(BIN)/python -m barnabas.sim --seed $(SEED) --seeds $(SEEDS) --jobs $(CORES)

bench: $(VENV)/.dev ## Measure Barnabas beside Apache Kafka, one broker, with security, and three (95 minutes); writes bench/RESULTS.md.
	@$(BIN)/python -m bench $(ARGS)

bench-quick: $(VENV)/.dev ## The same in about 25 minutes, one short round.
	@$(BIN)/python -m bench --quick $(ARGS)

# The console's page is built ahead and committed, so that users need no Node.
web/node_modules/.installed: web/package.json web/package-lock.json
	@cd web && npm ci --silent
	@touch $@

web: web/node_modules/.installed ## Build the console's page into src/barnabas/console/static (needs Node 20.19 or newer).
	@cd web && npm run --silent build -- --logLevel warn

web-check: web/node_modules/.installed ## Check that the committed page is what its sources give (needs Node 20.19 or newer).
	@cd web && npm run --silent build -- --logLevel warn --outDir ../build/web
	@diff -r -x '*.gz' build/web src/barnabas/console/static || { echo 'The committed page differs from its sources; run `make web` and commit src/barnabas/console/static.'; exit 1; }

screenshots: $(VENV)/.dev ## Write docs/images/console-*.png from a console on a cluster under load (needs chromium).
	@$(BIN)/python -m tools.console_screenshots $(ARGS)

test-browser: $(VENV)/.dev web/node_modules/.installed ## All tests of the console and its page, long ones too: axe, four brokers, Apache Kafka (needs chromium, Node, Java; minutes).
	@$(BIN)/python -m pytest -q tests/browser tests/console -m "slow or not slow"

format: $(VENV)/.dev ## Put the code into the house format.
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## Remove what was built (not ./data).
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/.work
