#!/usr/bin/env bash
# What a pipeline does with bsvc: sets a project up from nothing, writes, reads, changes keys, and takes it down again.
# Needs bsvc and curl on the PATH, BSVC_DATA_DIR, and API, the address of a server on that data. Can be repeated.
set -euo pipefail

say() { printf '== %s\n' "$*" >&2; }
call() { curl -sS --fail-with-body -H "x-api-key: $1" -H 'content-type: application/json' "${@:2}"; }

export BSVC_PROJECT=ci-shop

say 'set up, twice: the second run changes nothing'
cat >bsvc.yaml <<'YAML'
format: bsvc/1
projects:
  - name: ci-shop
    plan: pro
    collections:
      - name: orders
        fields: ['number:Number!&', 'note:String', 'paid:Boolean=false']
    users:
      fields: ['name:String', 'username:String&']
    mail:
      templates:
        - { name: paid, subject: 'Order {{number}}', text: 'Thank you for order {{number}}.' }
YAML
bsvc apply -f bsvc.yaml --dry-run --quiet | grep -q 'add template ci-shop/paid'
bsvc apply -f bsvc.yaml --no-input --quiet
[ "$(bsvc apply -f bsvc.yaml --no-input --json)" = '{"changes":[],"applied":true}' ]
bsvc project create "$BSVC_PROJECT" --if-not-exists --json | grep -q '"created":false'

say 'types: those of the repository are those of the collections, or the pipeline stops'
bsvc generate types --out bsvc.d.ts --quiet >/dev/null
bsvc generate types --out bsvc.d.ts --check --quiet >/dev/null
curl -sS -H "x-api-key: $(bsvc key create --type secret --quiet)" "$API/schemas/types.d.ts" | cmp - bsvc.d.ts
bsvc collection edit orders --add-field place:String --quiet >/dev/null
code=0; bsvc generate types --out bsvc.d.ts --check 2>/dev/null || code=$?; [ "$code" = 1 ]

say 'write and read'
old=$(bsvc key create --type secret --quiet)
call "$old" "$API/data/orders" -d '{"number":1}' >/dev/null
printf '{"number":"two"}\n' | bsvc data import orders - --format ndjson --dry-run --quiet 2>/dev/null && exit 1
printf '{"number":2}\n{"number":3,"paid":true}\n' | bsvc data import orders - --format ndjson --quiet
[ "$(bsvc data query orders --filter paid=true --count --quiet)" = 1 ]
call "$old" "$API/data/orders?count=true" | grep -q '"count":3'

say 'rotate the key: the old one works for the grace, then a revoked one no longer'
new=$(bsvc key rotate --type secret --grace 1h --quiet)
call "$old" "$API/data/orders?count=true" >/dev/null
call "$new" "$API/data/orders?count=true" >/dev/null
bsvc key rotate --type secret --grace 0s --quiet >/dev/null
for _ in $(seq 50); do
  status=$(curl -s -o /dev/null -w '%{http_code}' -H "x-api-key: $old" "$API/data/orders")
  [ "$status" = 401 ] && break
  sleep 0.1
done
[ "$status" = 401 ]

say 'refusals are told by exit codes'
code=0; bsvc collection add orders --field number:Number --no-input 2>/dev/null || code=$?; [ "$code" = 1 ]
code=0; bsvc collection add 2>/dev/null </dev/null || code=$?; [ "$code" = 2 ]

say 'back up and take down'
bsvc backup --out shop.backup --quiet >/dev/null
bsvc restore shop.backup --verify --quiet >/dev/null
bsvc project delete "$BSVC_PROJECT" --yes --quiet >/dev/null
code=0; bsvc project show "$BSVC_PROJECT" 2>/dev/null || code=$?; [ "$code" = 1 ]
say 'done'
