# What each target does is in scripts/; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help demo test test-interop test-arm64 test-ros2 soak lint fmt bench loom miri fuzz wheel dist manual clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

demo: ## run a small robot of real processes for about 25 seconds and show how flows change their routes
	@scripts/demo

test: ## run what every change must pass: formatting, lints, tidiness, licences, all tests
	@scripts/test $(STEPS)

test-interop: ## run the tests that build long: other engines and clients, arm64 and conformance under emulation
	@scripts/test-interop $(STEPS)

test-arm64: ## check the workspace for arm64 and run the conformance suite under qemu-user
	@scripts/test-arm64

test-ros2: ## run ROS 2's own nodes and tests on tsuji, in a shell where ROS 2 is sourced
	@scripts/test-ros2

soak: ## run what takes long: fuzz, loom, miri, endurance tests, full measurements
	@scripts/soak $(STEPS)

lint: ## check formatting, clippy, tidiness, licences; known vulnerabilities, shellcheck where installed
	@scripts/lint

fmt: ## format the sources
	@cargo fmt --all
	@cargo fmt --manifest-path lab/Cargo.toml
	@cargo fmt --manifest-path examples/own-messages/Cargo.toml
	@cargo fmt --manifest-path python/Cargo.toml

bench: ## measure tsuji beside the raw transports; rows go to target/bench/latency.json
	@scripts/bench

loom: ## try the interleavings of the lock-free code under loom
	@scripts/loom

miri: ## interpret the lock-free and parsing code under miri (needs a nightly toolchain)
	@scripts/miri

fuzz: ## fuzz every parser of messages, TSUJI_FUZZ_SECONDS each (default 60)
	@scripts/fuzz

wheel: ## make the Python package for this processor, and test it installed
	@scripts/python wheel

dist: ## make all packages, and try them in a clean Debian
	@scripts/dist

manual: ## make the manual as a book with search, in target/manual/html
	@scripts/manual

clean: ## remove everything built
	@cargo clean
