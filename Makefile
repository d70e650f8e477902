# The tasks of users and developers. Needs only Rust and Python 3.11 or newer. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# Tests start many processes; without bytecode each would compile what it imports, which takes longer than what it is started for.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := all
.PHONY: all help demo test test-simulator test-stacks test-studies slow slow-rust slow-python slow-package slow-docs realtime fmt instructions guest objects wheel fuzz lint audit pins memcheck mutants bench bench-emulator bench-kernel engines grid kernel-tools kernel-image bench-sweep bench-transfer bench-peers coming-from published web screenshots gallery docs measured declared reproduction clean

all: $(VENV)/built ## Build the rest of a checkout: what deals with hosts (`elephan path probe`, `transfer`, kernels as engines), and the optional packages (`elephan ui`, `query`, Dask).

help: ## List the tasks.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/simulator ## Compare four algorithms: a table and plots. The first time this builds the simulator.
	@$(BIN)/elephan compare --cc reno,hstcp,scalable,htcp --duration 120s --out results/demo --force
	@echo "pictures: results/demo/cwnd.png, results/demo/goodput.png; next: $(BIN)/elephan run two-flows; make all builds the rest"

# Three tiers of tests. The gate gives the same answer on any machine: virtual time, fixed cases, and nothing but Rust and Python.
test: $(VENV)/dev $(BIN)/elephan ## The gate: every rule, without a clock, some ten minutes on two cores.
	cargo test --workspace --quiet --tests
	cargo test --workspace --quiet --doc
	@$(gate)
	$(gated)

# The gate of one product, for a change there; each product is a client of those before. `python/tests` itself has what all commands have in common.
SIMULATOR := abi cc metrics model net network run scenario sim tcp traffic units
STACKS := emulator guest host linux packetdrill sys
STUDIES := capture probe session transfer
test-simulator: CRATES := $(SIMULATOR) ## The part of the gate that tests the simulator.
test-stacks: CRATES := $(STACKS) ## The same of what runs a kernel's TCP: hosts, guests, packetdrill.
test-studies: CRATES := $(STUDIES) ## The same of what is built on both: paths, sweeps, reproductions, reports, the page.
test-simulator test-stacks test-studies: test-%: $(VENV)/dev $(BIN)/elephan
	cargo test --quiet --tests $(addprefix -p elephan-,$(CRATES))
	cargo test --quiet --tests -p elephan-python
	@$(gate)
	$(gated) python/tests/$*

slow: $(VENV)/built guest ## What needs an image, a browser, ns-2 or a wheel, and fresh cases: others for each commit.
	$(MAKE) --jobs 2 --output-sync=target slow-rust slow-python slow-package slow-docs audit

# A commit has cases of its own, and the same on every machine. The tests of the steady state draw none.
SEED := $(shell printf '%d' 0x$$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1))
slow-rust:
	@echo "cases of this commit: SEED=$(SEED)"
	PROPTEST_RNG_SEED=$(SEED) FUZZ_SEED=$(SEED) FUZZ_COUNT=1000 cargo test --workspace --quiet --tests -- --skip steady_state
	$(MAKE) instructions

slow-python:
	$(MAKE) kernel-image || echo "the image of a kernel: not built; its tests are skipped"
	FUZZ_EXAMPLES=200 $(BIN)/pytest -m "slow or hypothesis" -rs --durations 20 --numprocesses auto --dist worksteal --hypothesis-profile fresh --hypothesis-seed $(SEED)

slow-package:
	! command -v clang >/dev/null || $(MAKE) objects
	$(BIN)/maturin build --profile checkout --quiet --out target/package
	$(PYTHON) scripts/package.py "$$(ls -t target/package/*.whl | head -1)"

slow-docs: docs
	$(BIN)/elephan reproduce kelly2003/table-3 --quick --out results/reproduce-quick | tail -1

realtime: $(VENV)/built guest ## What the clock of this machine decides, each test five times: probe, transfer, emulate, host, the engine linux. For quiet machines and releases.
	$(BIN)/pytest -m realtime -rsR
	for attempt in 1 2 3 4 5; do cargo test --quiet $(addprefix -p elephan-,host linux probe session transfer) -- --ignored || exit 1; done

fuzz: COUNT ?= 1000000000000
fuzz: $(VENV)/built ## Fuzz tests: damaged scenarios and results, and segments in any order, for a quarter of an hour; then scenarios drawn from the schema, without end, or COUNT=20000.
	BOLERO_RANDOM_TEST_TIME_MS=300000 nice cargo test --quiet -p elephan-tcp -p elephan-scenario --test it fuzz -- --ignored
	FUZZ_EXAMPLES=3000 nice $(BIN)/pytest python/tests/studies/test_damaged.py --hypothesis-profile fresh
	FUZZ_SEED=$$(date +%s%N) FUZZ_COUNT=$(COUNT) nice cargo test --quiet -p elephan-sim --test it fuzz -- --nocapture

fmt: $(VENV)/dev ## Format all sources, and mend what the linters can.
	cargo fmt
	$(BIN)/ruff check --quiet --fix python scripts docs/notebooks
	$(BIN)/ruff format --quiet python scripts docs/notebooks

lint: $(VENV)/built ## Formatting, warnings as errors, spelling and usage.
	cargo fmt --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff check python scripts docs/notebooks
	$(BIN)/ruff format --check python scripts docs/notebooks
	$(BIN)/mypy
	$(BIN)/python scripts/declared.py --check
	$(BIN)/python scripts/generated.py
	git ls-files -z '*.md' '*.py' '*.rs' '*.ts' '*.toml' | xargs -0 $(BIN)/codespell
	$(BIN)/python scripts/words.py

audit: $(VENV)/audit ## Check advisories, licences and sources of the dependencies; data that cannot be reached are skipped.
	scripts/audit.sh $(VENV)/audit

# UPGRADE=--upgrade selects the newest versions, UPGRADE="--upgrade-package NAME" the newest of one package. Without it, only changed requirements are resolved.
PINS := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(UPGRADE)
pins: export UV_CUSTOM_COMPILE_COMMAND := make pins
pins: $(VENV)/audit ## Rewrite the pinned requirements, with their hashes.
	$(VENV)/audit/bin/$(PINS) pyproject.toml requirements.in -o requirements.txt
	$(VENV)/audit/bin/$(PINS) --constraint requirements.txt --extra all pyproject.toml requirements-dev.in -o requirements-dev.txt
	$(VENV)/audit/bin/$(PINS) --constraint requirements-dev.txt requirements-docs.in -o requirements-docs.txt
	$(VENV)/audit/bin/$(PINS) requirements-audit.in -o requirements-audit.txt

memcheck: ## Run the C code of the kernel's algorithms, and the Rust code that calls it, under valgrind: four minutes. Miri cannot call C.
	cargo test --quiet -p elephan-abi --lib --config 'target."cfg(all())".runner = ["valgrind", "--quiet", "--error-exitcode=1"]'

mutants: ## Check that the tests detect changed rules: mutants of cc, tcp and net, an hour or two; MUTANTS="--shard 0/10" or "-f FILE" takes less time.
	@command -v cargo-mutants >/dev/null || cargo install --quiet --locked cargo-mutants@27.1.0
	PROPTEST_MAX_SHRINK_ITERS=0 cargo mutants -p elephan-cc -p elephan-tcp -p elephan-net $(MUTANTS)

instructions: ## Count the instructions of a simulated segment under valgrind, a minute: more than 2 % above scripts/instructions.toml fails.
	cargo build --quiet --profile checkout -p elephan-sim -p elephan-python --no-default-features --example bench
	$(PYTHON) scripts/instructions.py

RUN_BENCH := cargo run --release --quiet -p elephan-sim --example bench --
bench: ## Measure the speed and memory of the simulator; BENCH="--seconds 10" takes less time, BENCH="--repeat 5" gives medians. Writes docs/measured.
	{ $(RUN_BENCH) $(BENCH) && echo "on two threads:" && $(RUN_BENCH) "16 bottlenecks" --threads 2 $(BENCH); } \
	    | sed '1i ```text' | sed '$$a ```' > docs/measured/bench.md
	cat docs/measured/bench.md
	cargo run --release --quiet -p elephan-tcp --example loopback

bench-emulator: ## Measure the capacity and accuracy of the link emulator of the linux engine; needs root. Writes docs/measured.
	cargo build --release --quiet -p elephan-linux --example emulator
	cargo run --release --quiet -p elephan-linux --example emulator -- $(BENCH) | sed '1i ```text' | sed '$$a ```' > docs/measured/emulator.md

bench-kernel: $(VENV)/built guest ## Measure the speed of the kernel engine, a few minutes; needs an image (`elephan kernel build`). Writes docs/measured.
	$(BIN)/python scripts/bench_kernel.py > docs/measured/bench-kernel.md

# The algorithms of Linux, and those of kernel/.
LINUX := reno,cubic,vegas,linux:bic,linux:htcp,linux:scalable,highspeed,linux:westwood,hybla,nv,lp,linux:veno,linux:yeah,linux:illinois,linux:dctcp,cdg,bbr
OURS := hstcp,hstcp-fc,scalable,htcp,bic,fast,ltcp,compound
engines: $(VENV)/built guest ## Compare the simulator and a kernel's TCP, four minutes; needs an image (`elephan kernel build`). Writes docs/measured.
	$(BIN)/elephan compare --engines sim,kernel $(addprefix scenarios/engines/,one-20.toml one-100.toml two-20.toml two-100.toml) --cc $(LINUX),$(OURS) --format md --force > docs/measured/suite.md
	$(BIN)/elephan compare --engines sim,kernel scenarios/engines/gigabit-20.toml --cc $(LINUX),$(OURS) --format md --force > docs/measured/suite-gigabit.md
	$(BIN)/python scripts/engine_starts.py > docs/measured/engine-starts.md

grid: $(VENV)/built guest ## Compare the simulator and a kernel's TCP in some 310 cells, two or three hours; goes on where it was. KEPT=--kept keeps the kernel's runs. Writes docs/measured.
	nice -n 5 $(BIN)/elephan compare --engines sim,kernel $(wildcard scenarios/engines/grid/*.toml) --out results/grid $(KEPT) --format md > docs/measured/grid.md

kernel-tools: ## Install the tools that loading algorithms into the running kernel needs.
	@command -v clang >/dev/null && ldconfig -p | grep -q 'libbpf\.so\.1' \
	    || (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq clang libbpf1)

# The package with the source of the kernel that `make kernel-image` builds.
KERNEL_SOURCE := linux-source-6.12
kernel-image: $(VENV)/built guest ## Build the image of a kernel for the kernel engine, four minutes of processor time, unless it is there. Installs its source and the tools, if root.
	@test -e /usr/src/$(KERNEL_SOURCE).tar.xz && which gcc flex bison bc xz >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null \
	    || (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(KERNEL_SOURCE) gcc libc6-dev flex bison bc xz-utils)
	$(BIN)/elephan kernel build $(KERNEL_SOURCE)

bench-sweep: $(VENV)/built ## Measure the overhead of a sweep of 10,000 short runs. Writes docs/measured.
	$(BIN)/python scripts/bench_sweep.py > docs/measured/bench-sweep.md
	$(BIN)/python scripts/bench_sweep.py --dask 2 > docs/measured/bench-dask.md

bench-transfer: $(VENV)/built ## Measure transfers from memory over loopback beside iperf3 and openssl, some minutes. Writes docs/measured.
	$(BIN)/python scripts/bench_transfer.py > docs/measured/bench-transfer.md

bench-peers: ## Run the same dumbbells on Elephan, ns-2 and ns-3, ten minutes. Writes docs/measured.
	@command -v ns >/dev/null && test -d /usr/include/ns3 || (apt-get update -qq && apt-get install -y -qq ns2 libns3-dev)
	$(PYTHON) scripts/peers/compare.py > docs/measured/peers.md

objects: $(VENV)/built ## Compile the algorithms of kernel/ for the running kernel, with clang; wheels have the objects.
	$(BIN)/python scripts/objects.py

coming-from: $(VENV)/built ## Carry out the experiment of docs/coming-from in ns-2, ns-3, iperf3 and flent, and in Elephan, five minutes. Writes docs/measured. Needs root, and an idle machine.
	$(BIN)/python scripts/coming_from.py

wheel: guest objects ## Build a wheel for release in dist/, optimised by the profile of example runs: ten minutes. Installs the compiler's llvm-tools.
	rustup component add llvm-tools
	$(BIN)/maturin build --pgo --quiet --out dist

published: $(VENV)/built ## Run the published comparison of two flows. Writes docs/measured.
	$(BIN)/elephan compare --rate 250Mbit/s --rtt 82ms --buffer "20% bdp" --cc reno,bic,fast,hstcp,htcp,scalable \
	    --flows 2 --duration 600s --repeat 5 --out results/published --force
	cp results/published/table.md docs/measured/published.md

web: ## Rebuild the page of reports and of `elephan ui` from web/. Needs Node 20 or newer; users do not need it, because the output is committed.
	cd web && npm ci --silent --no-fund && npm run --silent build

screenshots: $(VENV)/built ## Retake the pictures of `elephan ui` in docs/. Needs the tools of `make web`, and chromium.
	cd web && npm ci --silent --no-fund && ELEPHAN=$(CURDIR)/$(BIN)/elephan npm run --silent screenshots
	$(BIN)/python scripts/docs/png.py docs/images/ui-*.png

gallery: $(VENV)/built ## Make the pictures of docs/gallery.md again, by its commands: half a minute.
	$(BIN)/python scripts/docs/gallery.py

# The site's source is a copy of docs/, with all that commands generate.
PAGES := target/docs
docs: $(VENV)/built $(VENV)/docs ## Fill a copy of docs/ with what is generated, run the notebooks, a minute; build the site into site/, and check its links.
	$(BIN)/python scripts/docs/pages.py $(PAGES)
	$(BIN)/python scripts/docs/notebooks.py $(PAGES)
	$(BIN)/python scripts/docs/verdicts.py $(PAGES)
	$(BIN)/python scripts/docs/navigation.py
	NO_COLOR=1 $(BIN)/zensical build --clean --strict --config-file site.yml
	@echo "open site/index.html"

declared: $(VENV)/built ## Generate the parts of Python that follow from the declarations in Rust.
	$(BIN)/python scripts/declared.py

measured: $(VENV)/built ## Measure every algorithm and queue for the documentation, a quarter of an hour; ONLY=NAME measures one algorithm, queue or metric in less than a minute. Writes docs/measured.json and docs/images.
	$(BIN)/python scripts/docs/measure.py $(ONLY)

# The environment: pinned packages, and the package with its extension module, which is rebuilt when a source changes.
SOURCES := pyproject.toml Cargo.toml Cargo.lock $(shell find crates kernel -name '*.rs' -o -name '*.[ch]' -o -name Cargo.toml)
# A command whose output is of interest only if it fails.
silently = $(1) > $(VENV)/log 2>&1 || { cat $(VENV)/log; exit 1; }
# Python compiles a module when it is first used; most of what is installed never is.
install = $(call silently,$(BIN)/pip install --no-compile --quiet --disable-pip-version-check --require-hashes -r $(1))

# maturin comes first, and compiles while pip installs the rest. An error of this build is shown by the one of $(VENV)/simulator, which repeats it.
$(VENV)/installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit("Elephan needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@echo "installing the packages of requirements.txt into $(VENV), and compiling the simulator, a minute the first time"
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^maturin==/,/^    # via/p' requirements.txt > $(VENV)/maturin.txt; $(call install,$(VENV)/maturin.txt)
	@$(BIN)/maturin build --profile checkout --no-default-features --quiet --out target/simulator 2> /dev/null & $(call install,requirements.txt); wait
	@touch $@

$(VENV)/dev: $(VENV)/installed requirements-dev.txt
	@echo "installing the packages of requirements-dev.txt, which the tests need"
	@$(call install,requirements-dev.txt)
	@touch $@

$(VENV)/audit: requirements-audit.txt
	$(PYTHON) -m venv $@
	$@/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-audit.txt
	touch $@

$(VENV)/docs: $(VENV)/dev requirements-docs.txt
	@$(call install,requirements-docs.txt)
	@touch $@

# The extension with the simulator alone, which is all that a first comparison needs, unless the whole was built before.
develop = $(call silently,VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --profile checkout --quiet $(1))
$(VENV)/simulator: $(VENV)/installed $(SOURCES)
	@$(call develop,$(if $(wildcard $(VENV)/built),,--no-default-features))
	@touch $@

$(VENV)/built: $(VENV)/dev $(SOURCES)
	@echo "building the extension module with all that deals with hosts, a minute the first time"
	@$(call develop,)
	@touch $(VENV)/simulator $@

# The command, which the tests start as a process; it is not made again when a source changes.
$(BIN)/elephan:
	@$(MAKE) $(VENV)/simulator

# The extension of the gate: as `cargo test` compiles it, with overflow checks and the invariants of every run. `sitecustomize.py` puts it
# before the one of the checkout in each process of Python.
GATE := target/gate
gated = PYTHONPATH=$(CURDIR)/$(GATE) $(BIN)/pytest --numprocesses auto --dist worksteal
gate = mkdir -p $(GATE) && cp -f target/debug/deps/lib_core.so $(GATE)/_core.abi3.so && cp -f scripts/sitecustomize.py $(GATE)

# What runs in a guest kernel, for the engine `kernel`: its first program, without a library, and the links. For Linux on x86-64.
# The host's C compiler will do: our C files call nothing of a C library but what all of them have. Wheels have them optimised for release.
GUEST := python/elephan/guest/bin
PROFILE := checkout
guest: export CC_x86_64_unknown_linux_musl ?= cc
wheel: PROFILE := release
guest:
	@if [ "$$(uname -sm)" = "Linux x86_64" ]; then \
	    { ! command -v rustup >/dev/null || rustup --quiet target add x86_64-unknown-linux-musl; } \
	    && cargo build --quiet --profile $(PROFILE) -p elephan-guest --bin elephan-init --target x86_64-unknown-linux-musl \
	    && cargo build --quiet --profile $(PROFILE) -p elephan-emulator \
	    && mkdir -p $(GUEST) && cp target/x86_64-unknown-linux-musl/$(PROFILE)/elephan-init target/$(PROFILE)/libelephan_emulator.so $(GUEST); fi

reproduction: $(VENV)/built ## Run all published experiments, which takes hours. Writes docs/reproduction.md and docs/reproduction.
	$(BIN)/elephan reproduce all --page docs/reproduction.md
	$(BIN)/python scripts/docs/png.py docs/reproduction/*.png
	$(BIN)/python scripts/docs/costs.py results/reproduce

clean:
	rm -rf $(VENV) target results
