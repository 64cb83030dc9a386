# Fresh machine: `make profile` measures this machine, `make test` runs the tests. Each sets up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= runs/profile
DEVICE ?= $(shell nvidia-smi -L >/dev/null 2>&1 && echo cuda || echo cpu)
BENCHMARKS := accounting_table aa_compare against_blocked_autorange explain_agreement lru_speed trace_grid \
  validate_published calibrate_cpu window_ratio gqa_ratio report_10k callgrind_table

.PHONY: profile test lint bench study lab gpu-check docs clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

profile: $(STAMP)  ## the main job: seven variants, lengths 64..2048, on this machine (OUT=runs/profile)
	@if [ -e $(OUT)/run.jsonl ]; then echo "continuing $(OUT); remove it to measure again"; fi
	$(BIN)/attnprof ceilings --device $(DEVICE)
	$(BIN)/attnprof run --device $(DEVICE) --out $(OUT) --resume
	$(BIN)/attnprof report $(OUT)

test: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/trace/test_lru.py tests/trace/test_stream.py --cov --cov-report=
	$(BIN)/python -m pytest -n 2 --cov --cov-append --cov-report=
	$(BIN)/coverage report --skip-covered --fail-under=95 \
	  --include='src/attnprof/core/*,src/attnprof/trace/*,src/attnprof/predict/*,src/attnprof/report/*'

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)  ## accuracy of timing, trace and prediction, about 40 minutes; tables under docs/results/
	for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || exit 1; done

docs: $(STAMP)  ## what the documentation takes from the program
	$(BIN)/python docs/generate.py

study: $(STAMP)
	cd experiments/attention-profile && ../../$(BIN)/python profile_attention.py && ../../$(BIN)/python profile_attention_v2.py \
	  && ../../$(BIN)/python plot_attention.py && ../../$(BIN)/python analyze_attention.py && ../../$(BIN)/python generate_docs.py

lab: $(STAMP)
	$(BIN)/attnprof lab --out experiments/27-flash-vs-naive-bytes

gpu-check: $(STAMP)
	$(BIN)/python benchmarks/gpu_check.py

clean:
	rm -rf $(VENV) runs
