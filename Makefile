# make demo           the whole chain on speech made by espeak-ng, then the results
# make test           the tests that need no service
# make test-services  the rest: what needs an S3 server, an MLflow server, Docker or a browser, or minutes of training
# make test-servers     of these: what needs a server or a browser
# make test-long        of these: minutes of training
# make test-containers  of these: both images built, the whole chain in them, held against DVC's (Docker, or root on Debian)
# make test-compose   mlflow/compose.yaml as a whole (needs a Docker engine with BuildKit, and docker-compose)
# make stack-up       PostgreSQL, an S3 server and MLflow on this machine, without Docker (STACK=--data DIR ...)
# make stack-down     stop them; nothing is deleted
# make check          ruff and mypy --strict
# make generate       write params.yaml (the quickstart) and everything that repeats the table of stages: dvc.yaml,
#                     components and their documents, network policies, tables of costs
# make infra-check    build every Kubernetes overlay and validate it
# make docs           pages of the Python interface from its docstrings, in build/api; a warning is an error
# make locks          remake requirements/*.txt (needs uv)
SHELL := /bin/bash
export DVC_NO_ANALYTICS := 1
export DO_NOT_TRACK := 1
export MLFLOW_DISABLE_TELEMETRY := true
# Pictures of pages that the browser tests took, to be looked at.
export VOXVEIL_SCREENSHOTS ?= $(CURDIR)/.voxveil/screenshots
BIN := .venv/bin

.PHONY: demo install dev test test-services test-servers test-long test-containers test-compose generate infra-check stack-up stack-down check format docs locks clean

demo: install
	@$(BIN)/voxveil demo

install:
	@requirements/install.sh gpu

dev:
	@requirements/install.sh dev

test: dev
	@# Two at a time, a file as a whole; the long files come first. A waiting thread leaves its core to the other.
	@GOMP_SPINCOUNT=0 tests/in_copy.sh -m "not services and not long and not containers" -n 2 --dist loadfile --no-loadscope-reorder --durations=20

test-services: dev
	@tests/services/prepare.sh
	@# What trains for minutes needs no server, so it takes the core that the tests of servers leave idle.
	@GOMP_SPINCOUNT=0 $(MAKE) --no-print-directory -j 2 --output-sync=target test-servers test-long
	@$(MAKE) --no-print-directory test-containers

test-servers: dev
	@tests/in_copy.sh -m services

test-long: dev
	@tests/in_copy.sh -m "long and not services"

test-containers: dev
	@tests/services/prepare.sh containers
	@tests/in_copy.sh -m containers -s

test-compose:
	@tests/services/compose.sh

stack-up: dev
	@tests/services/prepare.sh
	@$(BIN)/voxveil stack up $(STACK)

stack-down:
	@$(BIN)/voxveil stack down $(STACK)

check: dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

generate: dev
	@$(BIN)/voxveil params use quickstart
	@$(BIN)/python -m voxveil.kubeflow.generation

infra-check: dev
	@$(BIN)/python infra/check.py

format: dev
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: dev
	@$(BIN)/python docs/api.py

locks:
	@requirements/compile.sh

clean:
	rm -rf outputs metrics models demo-audio dvc_plots .voxveil
