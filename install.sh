#!/usr/bin/env bash
# Installs bsvc from this checkout: packages, build, and a `bsvc` command when a directory on the PATH may be written.
# Can be repeated; what is up to date is left alone. Needs no root.
#   ./install.sh                            install
#   ./install.sh --run [options of serve]   install, then start the server with a demo project
#   ./install.sh --test                     install, then run the tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

say() { printf '%s\n' "$*" >&2; }
refuse() {
  say "install.sh: $*"
  exit 1
}

mode=install
while [ $# -gt 0 ]; do
  word=$1
  shift
  case "$word" in
    --run)
      mode=run
      break
      ;;
    --test) mode=test ;;
    -h | --help)
      sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      say "install.sh: unknown option $word. Known: --run, --test, --help"
      exit 2
      ;;
  esac
done

command -v node >/dev/null || refuse 'Node.js is missing. Install version 20.20 or newer: https://nodejs.org/en/download'
command -v npm >/dev/null || refuse 'npm is missing. It comes with Node.js: https://nodejs.org/en/download'
version=$(node -p 'process.versions.node')
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 20) ? 0 : 1)' ||
  refuse "Node.js 20.20 or newer is needed; this is $version ($(command -v node)). See https://nodejs.org/en/download"

# Whether the packages that are there are those of package-lock.json, as after "npm ci", and load in this Node.
fits() {
  [ -f node_modules/.package-lock.json ] && node -e '
    const wanted = require("./package-lock.json").packages;
    const there = require("./node_modules/.package-lock.json").packages;
    const isMissing = ([name, { optional }]) => name !== "" && !optional && !there[name];
    const isOther = ([name, { version, integrity }]) =>
      wanted[name]?.version !== version || wanted[name]?.integrity !== integrity;
    if (Object.entries(wanted).some(isMissing) || Object.entries(there).some(isOther)) process.exit(1);
    require("lmdb");
  ' 2>/dev/null
}

# Packages with compiled parts belong to one major version of Node, so the stamp names it.
wanted="$(cksum <package-lock.json) node ${version%%.*}"
stamp=node_modules/.installed-by-bsvc
[ -f "$stamp" ] || ! fits || printf '%s\n' "$wanted" >"$stamp"
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ]; then
  say 'Installing packages …'
  npm ci --no-audit --no-fund --loglevel=error >&2
  printf '%s\n' "$wanted" >"$stamp"
fi

if [ ! -f dist/main.js ] || [ -n "$(find src cli package.json tsconfig.json build.mjs -newer dist/main.js -print -quit)" ]; then
  say 'Building …'
  npm run --silent build >&2
fi
chmod +x bin/bsvc.js

# The first directory that is on the PATH and may be written; an existing command that is not ours is never replaced.
target="$PWD/bin/bsvc.js"
linked=
foreign=
for dir in "$(npm prefix -g 2>/dev/null)/bin" "$HOME/.local/bin" "$HOME/bin"; do
  case ":$PATH:" in *":$dir:"*) ;; *) continue ;; esac
  link="$dir/bsvc"
  if [ "$(readlink -f "$link" 2>/dev/null || true)" = "$target" ]; then
    linked=$link
    break
  fi
  [ -d "$dir" ] && [ -w "$dir" ] || continue
  if [ ! -e "$link" ] && [ ! -L "$link" ]; then
    ln -s "$target" "$link"
    linked=$link
    break
  elif [ -L "$link" ] && [ ! -e "$link" ]; then
    # A link into a checkout that is gone.
    ln -sfn "$target" "$link"
    linked=$link
    break
  fi
  foreign=${foreign:-$link}
done
call=bsvc
if [ -n "$linked" ]; then
  say "bsvc $(node "$target" --version) is installed: $linked"
elif [ -n "$foreign" ]; then
  call=$target
  say "bsvc $(node "$target" --version) is built. $foreign is another bsvc and stays: remove it and run this again, or call $target"
else
  call=$target
  say "bsvc $(node "$target" --version) is built. No directory of the PATH may be written, so call it as $target"
fi

case "$mode" in
  run) exec node "$target" serve --demo "$@" ;;
  test) exec npm test ;;
  *) say "Next: $call serve --demo" ;;
esac
