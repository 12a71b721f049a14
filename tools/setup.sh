#!/usr/bin/env bash
# Make .venv contain exactly the packages of requirements.lock, and this project as an editable install.
# `tools/setup.sh rivals` does the same with .venv-rivals and requirements-rivals.lock.
# Needs Python 3.11 or later with pip. Returns at once if nothing has changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

suffix=${1:+-$1}
venv=.venv$suffix
lock=requirements$suffix.lock
stamp=$venv/.up-to-date
uv=.uv/bin/uv

fail() {
  echo "setup: $1" >&2
  exit 1
}

# Run a command silently; if it fails, show what it said and end with one line that says what to do.
attempt() {
  local remedy=$1 said
  shift
  said=$("$@" 2>&1) || {
    printf '%s\n' "$said" >&2
    fail "$remedy"
  }
}

[ -f "$lock" ] || fail "there is no $lock; give no argument, or 'rivals'"

version=$(grep '^__version__' src/ldpstream/__init__.py)
state=$(pwd && echo "$version" | cat - "$lock" requirements-uv.lock pyproject.toml tools/setup.sh | cksum)
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$state" ]; then
  exit 0
fi

python=${PYTHON:-python3}
command -v "$python" >/dev/null || fail "there is no '$python'; install Python 3.11 or later"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "'$python' is older than 3.11; install a later one and run: make setup PYTHON=/path/to/it"
"$python" -m pip --version >/dev/null 2>&1 ||
  fail "'$python' has no pip; install it (on Debian: apt-get install python3-pip)"
echo "Setting up $venv; this takes up to a minute, once." >&2

# uv does not read pip's settings: pass on the two without which a mirror or a proxy fails.
pip_setting() {
  "$python" -m pip config list 2>/dev/null | sed -n "s/^[^=]*\.$1='\(.*\)'\$/\1/p" | head -n 1
}
if [ -z "${UV_DEFAULT_INDEX:-}" ]; then
  UV_DEFAULT_INDEX=$(pip_setting index-url)
  if [ -n "$UV_DEFAULT_INDEX" ]; then export UV_DEFAULT_INDEX; else unset UV_DEFAULT_INDEX; fi
fi
if [ -z "${SSL_CERT_FILE:-}" ]; then
  SSL_CERT_FILE=$(pip_setting cert)
  if [ -n "$SSL_CERT_FILE" ]; then export SSL_CERT_FILE; else unset SSL_CERT_FILE; fi
fi

wanted=$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements-uv.lock)
if [[ "$("$uv" --version 2>/dev/null)" != "uv $wanted"* ]]; then
  rm -rf .uv
  # --target is allowed where the system's own packages are externally managed (PEP 668).
  PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 attempt \
    "pip could not install uv $wanted (see above); check the network and pip's settings, run again" \
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes --target .uv -r requirements-uv.lock
fi

export UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1
mkdir -p "$("$uv" cache dir)" 2>/dev/null && [ -w "$("$uv" cache dir)" ] ||
  export UV_CACHE_DIR="$PWD/.uv/cache"

if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  attempt "uv could not make $venv (see above); check that this folder is writable" \
    "$uv" venv --quiet --clear --relocatable \
    --python "$("$python" -c 'import sys; print(sys.executable)')" "$venv"
fi
rm -f "$stamp"
attempt "$lock could not be installed (see above); check the network, then run again" \
  "$uv" pip sync --quiet --python "$venv/bin/python" --require-hashes "$lock"
attempt "ldpstream itself could not be installed (see above)" \
  "$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
attempt "the packages of $lock do not fit each other (see above); run: make lock" \
  "$uv" pip check --quiet --python "$venv/bin/python"
printf '%s' "$state" >"$stamp"
