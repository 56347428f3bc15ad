import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readPackageFile } from '../world/app.js';
import { missingLines, readExamples, readGuides, type Example } from '../helpers/guide-examples.js';
import { findFreePort } from '../helpers/listen.js';
import { runOrThrow, startService, type RunningService } from '../helpers/run-binary.js';
import { runShell } from '../helpers/run-shell.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

/** Examples that are not run, by guide and first line, with the reason. */
const NOT_RUN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'getting-started.md': {
    './install.sh': 'test/e2e/install.test.ts runs it',
    'npm run package                    # in the checkout': 'test/e2e/package.test.ts runs it',
  },
  'files.md': {
    'BSVC_S3_URL=s3://KEY:SECRET@s3.amazonaws.com/my-bucket?region=eu-central-1': 'needs an account at a provider',
    'bsvc byok bucket set --project shop --bucket shop-files --region auto \\': 'needs an account at a provider',
  },
  'backup.md': {
    'BSVC_BACKUP_TO=/var/backups/bsvc': 'the schedule has tests of its own, with a clock that can be moved',
  },
  'mongodb.md': {
    'MONGODB_URI=mongodb://db1.internal,db2.internal,db3.internal/bsvc?replicaSet=rs0': 'needs a MongoDB',
    "sh.enableSharding('bsvc');": 'needs a sharded MongoDB',
  },
  'monitoring.md': {
    'scrape_configs:': 'configuration of another program',
    ['import { NodeSDK } from ' + "'@opentelemetry/sdk-node';"]:
      'test/e2e/telemetry.test.ts runs it against a receiver',
    'export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318': 'test/e2e/telemetry.test.ts does the same',
  },
  'deploy.md': {
    'app.example.com {': 'test/e2e/behind-proxy.test.ts runs it',
    'location /backend/ {': 'test/e2e/behind-proxy.test.ts runs it',
    'example.com {': 'test/e2e/behind-proxy.test.ts runs it',
    'frontend api': 'test/e2e/behind-proxy.test.ts runs it',
  },
  'moving.md': Object.fromEntries(
    [
      'bsvc project create shop',
      `psql "$SUPABASE_DB_URL" -Atc 'select row_to_json(u) from auth.users u' > users.ndjson`,
      'mongoexport --uri "$PARSE_DB_URL" --collection _User --out users.ndjson',
      'mongoexport --uri "$MONGODB_URI" --collection posts --out posts.ndjson',
    ].map((line) => [line, 'needs the other service; test/cli/foreign-import.test.ts imports such files']),
  ),
  'firestore.md': Object.fromEntries(
    [
      'firebase auth:export users.json --format=json',
      'URL="https://firestore.googleapis.com/v1/projects/my-app/databases/(default)/documents"',
    ].map((line) => [line, 'needs the other service; test/cli/foreign-import.test.ts imports such files']),
  ),
  'instantdb.md': {
    '// export.mjs': 'needs the other service',
    ['import { createCollection, eq, useLiveQuery } from ' + "'@tanstack/react-db';"]:
      'needs TanStack DB; test/client/tanstack.test.ts does the same',
  },
  'rules.md': {
    'format: bsvc-rules/1': 'templates/examples has whole files; test/e2e runs them',
    '$ bsvc rules test rules.test.yaml': 'of the file above',
  },
  'realm.md': { '// notes.mjs': 'needs RxDB; test/client/rxdb.test.ts does the same' },
  'auth.md': {
    '$ bsvc user social set google --client-id 1234.apps.googleusercontent.com \\': 'needs an account at Google',
    '$ bsvc user social set apple --client-id com.shop.web --app-client-id com.shop.app \\':
      'needs a key of Apple; the tests of social sign-in have an issuer with such keys',
  },
  'client.md': {
    ['import { createCoreClient } from ' + "'@bsvc/client/core';"]: 'an import; test/client/package.test.ts makes it',
    'const stop = api.auth.onChange((user, reason) => {': 'test/client/session-end.test.ts does the same',
  },
  'offline.md': {
    ['import { createClient } from ' + "'@bsvc/client';"]:
      'needs a browser; test/client/deep/offline.test.ts does the same',
    "const store = openOfflineStore('notes', {": 'needs a browser; test/client/offline.test.ts does the same',
  },
  'react.md': Object.fromEntries([
    [
      'import { createClient } from ' + "'@bsvc/client';",
      'needs React; test/client/deep/react-user.test.ts does the same',
    ],
    ['// lib/api.js', 'needs Next.js; test/client/platforms.test.ts has clients with a token'],
    ['// app/notes/page.js', 'needs Next.js; test/client/platforms.test.ts has clients with a token'],
    ['// app/session/route.js', 'needs Next.js'],
    [
      'import AsyncStorage from ' + "'@react-native-async-storage/async-storage';",
      'needs React Native; test/client/platforms.test.ts has storages that answer with promises',
    ],
  ]),
  'SKILL.md': {
    ['import { createClient } from ' + "'http://localhost:4000/api/client.js';"]:
      'a part of a page; test/cli/first-minutes.test.ts has a whole one',
  },
  'own-server.md': { '// check-token.mjs': 'needs a library; test/e2e/own-server.test.ts runs it' },
  'mongodb-for-tests.md': {
    "const orders = engine.db('shop').collection('orders');":
      'a part of a program; test/e2e/engine-package.test.ts has a whole one',
  },
  'own-code.md': { '{': 'what is sent; test/api/hooks.test.ts reads such calls' },
  'first-app.md': {
    'python3 -m http.server 5173 --bind 127.0.0.1': 'test/cli/first-minutes.test.ts serves the page itself',
  },
};
/** Guides whose examples start a server of their own. */
const STARTS_ITS_SERVER = new Set(['getting-started.md', 'SKILL.md']);
/** Guides that another test runs as a whole. */
const RUN_ELSEWHERE = new Set(['first-app.md', 'mongodb-for-tests.md', 'deploy.md']);

/** The guides, and what coding agents are told to do. */
const guides = [...readGuides(), ['SKILL.md', readPackageFile('templates', 'agents', 'SKILL.md')] as const].map(
  ([name, text]) => ({ name, examples: readExamples(text) }),
);
const firstLine = ({ text }: Example): string => text.split('\n', 1)[0]!;
const isRun = (name: string, example: Example): boolean => !NOT_RUN[name]?.[firstLine(example)];

/** Guides that declare whole projects, by names that others have too. */
const DECLARES = new Set(['rules.md']);

interface Store {
  settings: Record<string, string>;
  service: RunningService;
}

const stores: Store[] = [];

async function openStore(name: string): Promise<Store> {
  const settings = { BSVC_DATA_DIR: join(dir.path, name), BSVC_WEBHOOK_ALLOW_PRIVATE: 'true', BSVC_LOG_LEVEL: 'warn' };
  const store = { settings, service: await startService(['serve', '--port', '0'], settings) };
  stores.push(store);
  return store;
}

// One server for all others: each guide has a project of its own.
const dir = use(await openTempDir());
await openStore('data');
afterAll(async () => {
  for (const { service } of stores) await service.stop();
});

/** What a reader of the guide sees who has done what Getting started says, in a folder of its own. */
async function follow(name: string, examples: readonly Example[]): Promise<string> {
  const { settings, service } = DECLARES.has(name) ? await openStore(`data of ${name}`) : stores[0]!;
  const folder = join(dir.path, name);
  mkdirSync(folder);
  const env: Record<string, string> = { ...settings, BSVC_RATE_LIMIT: 'off', BSVC_AUTH_RATE_LIMIT: 'off' };
  const [port, receiver] = [await findFreePort(), await findFreePort()];
  if (!STARTS_ITS_SERVER.has(name)) {
    const project = name.replace('.md', '-guide');
    const { keys } = JSON.parse(await runOrThrow(['project', 'create', project, '--json'], settings)) as {
      keys: { publishable: string; secret: string };
    };
    const API = `${service.ready.url.replace('127.0.0.1', 'localhost')}/api`;
    Object.assign(env, { BSVC_PROJECT: project, PUBLIC: keys.publishable, SECRET: keys.secret, API });
  }
  const moved = (text: string): string =>
    text
      .replaceAll('localhost:4000', `localhost:${port}`)
      .replaceAll('PORT=4000', `PORT=${port}`)
      .replaceAll('127.0.0.1:9000', `127.0.0.1:${receiver}`)
      .replaceAll('listen(9000', `listen(${receiver}`);
  for (const { file, text } of examples) if (file) writeFileSync(join(folder, file), moved(text));
  const script = moved(
    examples
      .filter(({ language }) => language === 'sh')
      .map(({ text }) => text)
      .join('\n'),
  );
  const careful = `trap 'kill $(jobs -p) 2>/dev/null || true' EXIT; trap 'exit 1' TERM\n${script}`;
  const { code, output } = await runShell(folder, ['-m', '-e', '-o', 'pipefail', '-c', careful], env, 280_000);
  expect(code, output).toBe(0);
  return output;
}

describe('the examples of the guides', () => {
  it.each(
    guides.filter(({ name, examples }) => !RUN_ELSEWHERE.has(name) && examples.some((each) => isRun(name, each))),
  )('do what they say, pasted as a whole: $name', async ({ name, examples }) => {
    const run = examples.filter((example) => isRun(name, example));
    const output = await follow(name, run);
    for (const { shown } of run) expect([missingLines(shown ?? '', output), output]).toEqual([[], output]);
  });

  it('are in the shell, or saved and used by what is run, or listed with the reason why they are not run', () => {
    const idle = guides.flatMap(({ name, examples }) => {
      const script = examples.filter((each) => each.language === 'sh' && isRun(name, each)).map(({ text }) => text);
      return examples
        .filter((each) => isRun(name, each) && each.language !== 'sh')
        .filter(({ file }) => !(file && (RUN_ELSEWHERE.has(name) || script.some((text) => text.includes(file)))))
        .map((each) => `${name}: ${firstLine(each)}`);
    });
    expect(idle).toEqual([]);
  });

  it('are there when they are listed as not run', () => {
    const gone = Object.entries(NOT_RUN).flatMap(([name, listed]) => {
      const lines = guides.find((guide) => guide.name === name)?.examples.map(firstLine) ?? [];
      return Object.keys(listed).filter((line) => !lines.includes(line));
    });
    expect(gone).toEqual([]);
  });
});
