#!/usr/bin/env bash
# Write the lock files from pyproject.toml. Versions already locked are kept where they still fit;
# `tools/lock.sh --upgrade` takes the newest, `tools/lock.sh --upgrade-package NAME` that of one package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

uv=.uv/bin/uv
[ -x "$uv" ] || uv=$(command -v uv) || {
  echo "lock: there is no uv; run: make setup" >&2
  exit 1
}

compile() {
  local lock=$1
  shift
  "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
    --output-file "$lock" "$@"
  # The lock works with any registry and on any machine: it names neither.
  if grep -nE '[a-z]+://|file:|(^|[[:space:]])/[a-z]' "$lock"; then
    echo "lock: $lock names an address or a path (above); a lock must have neither" >&2
    exit 1
  fi
}

compile requirements.lock "$@" --all-extras --group dev pyproject.toml
compile requirements-rivals.lock "$@" --extra lab --group build --group rivals pyproject.toml
compile requirements-uv.lock "$@" --group pyproject.toml:bootstrap
