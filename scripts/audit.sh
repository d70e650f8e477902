#!/usr/bin/env bash
# What is known against the pinned dependencies: advisories, licences, sources. A finding fails; data that cannot be reached are
# named and passed over. Takes the folder with pip-audit.
set -uo pipefail
cd "$(dirname "$0")/.."
tools=$1
# Pinned: what is checked must not change by itself. Built without optimisation, which is quicker than it saves.
DENY=0.20.2
failed=0

checked() { # WHAT COMMAND...: runs a check.
    local what=$1
    shift
    if "$@"; then echo "$what: nothing known"; else echo "$what: expected nothing, found the above" >&2; failed=1; fi
}

skipped() { echo "$1: skipped, for $2 cannot be reached"; }

# The data are those of one version of a package each: a mirror of the index alone does not have them.
if curl --fail --silent --location --max-time 20 --output /dev/null https://pypi.org/pypi/requests/2.31.0/json; then
    for pins in requirements*.txt; do
        checked "advisories on $pins" "$tools/bin/pip-audit" --strict --progress-spinner off --disable-pip --require-hashes --requirement "$pins"
    done
else
    skipped "advisories on Python packages" "the JSON API of pypi.org"
fi

if deny=$(command -v cargo-deny || { [ -x target/tools/bin/cargo-deny ] && echo target/tools/bin/cargo-deny; }) \
    || { CARGO_PROFILE_DEV_DEBUG=0 timeout 1200 cargo install --quiet --locked --debug --root target/tools --version "$DENY" cargo-deny \
        && deny=target/tools/bin/cargo-deny; }; then
    checked "licences, sources and duplicates of crates" "$deny" --log-level error check licenses bans sources
    if timeout 30 git ls-remote --quiet https://github.com/RustSec/advisory-db HEAD >/dev/null 2>&1; then
        checked "advisories on crates" "$deny" --log-level error check advisories
    else
        skipped "advisories on crates" "github.com/RustSec/advisory-db"
    fi
else
    skipped "licences and sources of crates" "cargo-deny $DENY, or what it needs to be built,"
fi

if command -v npm >/dev/null; then
    found=$(cd web && timeout 60 npm audit --package-lock-only --json 2>/dev/null)
    if grep -q '"auditReportVersion"' <<<"$found"; then
        checked "advisories on the page's packages" npm --prefix web audit --package-lock-only
    else
        skipped "advisories on the page's packages" "the registry's audit endpoint"
    fi
else
    skipped "advisories on the page's packages" "npm, which is not installed,"
fi
exit "$failed"
