# Elephan from the wheel in dist/ (`make wheel`). docs/install.md has what the engines that run a kernel's TCP need of the container.
FROM python:3.13-slim-bookworm
# libbpf loads algorithms into the running kernel; iproute2 has `ip` and `ss`; gcc compiles algorithms in C for the simulator.
# hadolint ignore=DL3008 - Debian removes older versions of a release
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc iproute2 libbpf1 libc6-dev \
    && rm -rf /var/lib/apt/lists/*
RUN --mount=type=bind,source=dist,target=/dist \
    pip install --no-cache-dir "$(ls /dist/elephan-*-manylinux*_x86_64.whl)[all]"
WORKDIR /work
ENTRYPOINT ["elephan"]
CMD ["--help"]
