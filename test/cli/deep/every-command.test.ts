import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ObjectId } from 'bson';
import { afterAll, describe, expect, it } from 'vitest';
import { COMMANDS, type CommandEntry, type CommandNode } from '../../world/cli.js';
import { openEngine } from '../../world/engine.js';
import { runBinary, startService, type BinaryOutcome } from '../../helpers/run-binary.js';
import { openS3Double } from '../../helpers/s3-double.js';
import { openTempDir } from '../../helpers/temp-dir.js';
import { openWebhookReceiver } from '../../helpers/webhook-receiver.js';
import { use } from '../../helpers/use.js';

/** A day in the life of one data directory, told by every command of bsvc with `--json`. */
const outcomes = new Map<string, BinaryOutcome[]>();

/** What is given by `--…-env` or standard input, and must be seen nowhere else. */
const SECRETS = {
  PASSWORD: 'canary-password-4711',
  MAIL_KEY: 're_canary_mail_key_4711',
  EVENTS_SECRET: `whsec_${Buffer.from('canary-events-secret-4711').toString('base64')}`,
  SOCIAL_SECRET: 'canary-social-secret-4711',
};

const LEAVES = listLeaves(COMMANDS);

/** Goes on for as long as there is something to tell: one JSON value a line. */
const LINED = '--watch';

/** Runs `bsvc <words> <more> --json`, keeps what came of it under the words, and answers the JSON value. */
async function bsvc<T = Record<string, never>>(words: string, more: string[] = [], stdin?: string): Promise<T> {
  const outcome = await runBinary([...words.split(' '), ...more, '--json'], { env, cwd: dir.path, stdin });
  outcomes.set(words, [...(outcomes.get(words) ?? []), outcome]);
  if (outcome.code !== 0) throw new Error(`bsvc ${words} ${more.join(' ')}: exit ${outcome.code}, ${outcome.stderr}`);
  return (more.includes(LINED) ? null : JSON.parse(outcome.stdout)) as T;
}

async function runService(words: string, more: string[]): Promise<void> {
  const service = await startService([words, ...more], env);
  const code = await service.stop('SIGTERM');
  outcomes.set(words, [{ code, stdout: service.stdout(), stderr: '' }]);
}

const [dir, bucket, receiver] = await Promise.all([openTempDir(), openS3Double(), openWebhookReceiver()]);
const elsewhere = use(openEngine({ dataDir: join(dir.path, 'elsewhere'), durability: 'relaxed' }));
const env: Record<string, string> = {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_DURABILITY: 'relaxed',
  BSVC_PROJECT: 'shop',
  BSVC_BCRYPT_COST: '4',
  BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
  BSVC_LOG_LEVEL: 'warn',
  ...SECRETS,
  BUCKET_SECRET: bucket.access.secretAccessKey,
};
await bsvc('project create', ['shop']);
// Two at a time, so that a busy machine does not make a command give up on the store.
await Promise.all([
  aboutProjects().then(aboutUsers).then(aboutHooks),
  aboutCollections().then(aboutMail).then(aboutTheHouse),
]);
await aboutTheStore();
await aboutExamples();
await aboutLeaving();

afterAll(async () => {
  await Promise.all([bucket.close(), receiver.close(), dir.remove()]);
});

async function aboutProjects(): Promise<void> {
  await bsvc('project create', ['other', '--plan', 'pro']);
  await bsvc('project create', ['other', '--if-not-exists']);
  await bsvc('project list');
  await bsvc('project update', ['other', '--name', 'another', '--limit', 'mail=7']);
  await bsvc('project show', ['another']);
  await bsvc('project brief', ['another']);
  await bsvc('project delete', ['another', '--yes']);
  const { key } = await bsvc<{ key: { id: string } }>('key create', ['--type', 'secret']);
  await bsvc('key list');
  await bsvc('key rotate', ['--type', 'secret', '--grace', '1h']);
  await bsvc('key revoke', [key.id, '--yes']);
}

async function aboutCollections(): Promise<void> {
  await bsvc('collection add', ['posts', '--field', 'title:String!', '--field', 'userId:String']);
  await bsvc('collection add', ['posts', '--flexible', '--if-not-exists']);
  const lines = '{"title":"one"}\n{"title":"two"}\n';
  await bsvc('data import', ['posts', '-', '--format', 'ndjson'], lines);
  await bsvc('data import', ['posts', '-', '--format', 'ndjson', '--dry-run'], lines);
  await bsvc('data query', ['posts', '--filter', 'title=one']);
  await bsvc('data query', ['posts', '--count']);
  await bsvc('data query', ['posts', '--watch', '--once']);
  const { _id } = await bsvc<{ _id: string }>('data insert', ['posts', '{"title":"three"}']);
  await bsvc('data query', ['posts', _id]);
  await bsvc('data query', ['posts', '--pipeline', '[{"$count":"all"}]']);
  await bsvc('data update', ['posts', '-', _id], '{"title":"changed"}');
  await bsvc('data delete', ['posts', _id]);
  await bsvc('data update', ['posts', '{"title":"more"}', '--filter', 'title=one', '--yes']);
  await bsvc('data delete', ['posts', '--filter', 'title=none', '--dry-run']);
  await bsvc('data batch', ['-', '--dry-run'], '[{"op":"insert","collection":"posts","body":{"title":"four"}}]');
  await bsvc('data delete', ['posts', _id, '--undo']);
  await bsvc('data export', ['posts']);
  await bsvc('data export', ['posts', '--out', 'posts.csv']);
  await bsvc('collection rls', ['posts', '--server-only']);
  await bsvc('collection rls', ['posts', '--public', '--yes']);
  await bsvc('rules check', ['--data']);
  await bsvc('rules explain', ['posts', '--as', 'anyone', '--filter', 'title=one']);
  await bsvc('data query', ['posts', '--as', 'anyone']);
  await bsvc('data query', ['posts', '--watch', '--once', '--as', 'anyone']);
  await bsvc('rules test', [join(import.meta.dirname, '../../../templates/examples/board/rules.test.yaml')]);
  await bsvc('collection list');
  await bsvc('collection show', ['posts']);
  await bsvc('collection edit', ['posts', '--set-field', 'title:String', '--check']);
  await bsvc('collection edit', ['posts', '--add-field', 'views:Number=0']);
  await bsvc('collection rls', ['posts', '--mode', 'public-read']);
  await bsvc('collection edit', ['posts', '--changes', '7d']);
  await bsvc('project export', ['shop']);
  await bsvc('project export', ['shop', '--out', 'project.yaml']);
  await bsvc('generate', ['json-schema']);
  await bsvc('generate', ['types']);
  await bsvc('generate', ['types', '--out', 'types.d.ts']);
  await bsvc('generate', ['types', '--out', 'types.d.ts', '--check']);
  await bsvc('generate', ['openapi', '--out', 'openapi.json']);
  await bsvc('generate', ['client', '--out', 'bsvc-client']);
  await bsvc('collection edit', ['posts', '--name', 'articles']);
  await bsvc('collection drop', ['articles', '--yes']);
}

async function aboutUsers(): Promise<void> {
  const ann = 'ann@example.com';
  await bsvc('user create', ['--email', ann, '--password-env', 'PASSWORD', '--verified']);
  await bsvc('user create', ['--email', ann, '--if-not-exists']);
  await bsvc('user list');
  await bsvc('user list', [ann]);
  await bsvc('user update', [ann, '--end-sessions', 'all']);
  await bsvc('user update', [ann, '--password-stdin'], `${SECRETS.PASSWORD}-again\n`);
  await bsvc('user update', [ann, '--disable']);
  await bsvc('user update', [ann, '--enable', '--add-role', 'editor']);
  await bsvc('project update', ['shop', '--redirect', 'https://shop.example.com/join']);
  await bsvc('user create', ['--email', 'grace@example.com', '--invite', '--role', 'editor']);
  const grace = '{"_id":"grace","email":"grace@example.com","emailVerified":true}\n';
  await bsvc('data import', ['users', '-', '--from', 'parse'], grace);
  await bsvc('user delete', ['grace@example.com', '--erase', '--yes']);
  await bsvc('user delete', [ann, '--yes']);
  const place = ['--client-id', 'shop', '--redirect-url', 'https://shop.example.com/in'];
  await bsvc('user social set', ['github', ...place, '--client-secret-env', 'SOCIAL_SECRET']);
  await bsvc('user social list');
  await bsvc('user social remove', ['github', '--yes']);
  await bsvc('operator add', ['--email', ann, '--password-env', 'PASSWORD']);
  await bsvc('operator list');
  await bsvc('operator token', [ann, '--ttl', '1h']);
  await bsvc('operator token', [ann, '--list']);
  await bsvc('operator token', [ann, '--revoke', 'all']);
  await bsvc('operator add', ['--email', ann, '--replace-password', '--password-stdin'], `${SECRETS.PASSWORD}-again\n`);
  await bsvc('console', [ann, '--no-open']);
  await bsvc('operator remove', [ann, '--yes']);
}

async function aboutMail(): Promise<void> {
  await writeFile(join(dir.path, 'welcome.txt'), 'Hello {{name}}');
  await bsvc('mail template set', ['welcome', '--subject', 'Hello', '--text', 'welcome.txt']);
  await bsvc('mail template list');
  await bsvc('mail template list', ['welcome']);
  await bsvc('mail template remove', ['welcome', '--yes']);
  await bsvc('mail test', ['--to', 'me@example.com']);
  await bsvc('mail logs');
  await bsvc('byok set', ['--mail-key-env', 'MAIL_KEY', '--no-verify']);
  await bsvc('byok set', ['--webhook-secret-stdin'], SECRETS.EVENTS_SECRET);
  await bsvc('byok show');
  await bsvc('byok clear', ['--yes']);
  const { bucket: name, region, accessKeyId } = bucket.access;
  const place = ['--bucket', name, '--region', region, '--endpoint', bucket.url, '--path-style'];
  await bsvc('byok bucket set', [
    ...place,
    '--access-key-id',
    accessKeyId,
    '--secret-access-key-env',
    'BUCKET_SECRET',
    '--no-verify',
  ]);
  await bsvc('byok bucket show');
  await bsvc('byok bucket show', ['--origin', 'https://shop.example.com', '--fix']);
  await bsvc('byok bucket clear', ['--yes']);
}

async function aboutHooks(): Promise<void> {
  const { id } = await bsvc<{ id: string }>('webhook add', ['--url', receiver.url, '--events', 'posts.*']);
  await bsvc('webhook list');
  const delivery = await bsvc<{ id: string }>('webhook test', [id]);
  await bsvc('webhook deliveries', [id]);
  await bsvc('webhook replay', [id, delivery.id]);
  await bsvc('webhook rotate-secret', [id]);
  await bsvc('webhook edit', [id, '--disable', '--yes']);
  await bsvc('webhook remove', [id, '--yes']);
  const { answer } = receiver;
  receiver.answer = (response) => void response.writeHead(200).end('{"allow":true}');
  await bsvc('hook add', ['posts.create', '--url', receiver.url]);
  await bsvc('hook test', ['posts.create']);
  await bsvc('hook list');
  await bsvc('hook remove', ['posts.create', '--yes']);
  await bsvc('schedule add', ['nightly', '--cron', '0 3 * * *', '--url', receiver.url]);
  await bsvc('hook test', ['nightly']);
  await bsvc('schedule list');
  await bsvc('schedule remove', ['nightly', '--yes']);
  receiver.answer = answer;
  await bsvc('jobs');
  await bsvc('jobs', ['--retry', 'dead']);
}

async function aboutTheHouse(): Promise<void> {
  await writeFile(join(dir.path, 'bsvc.json'), '{"format":"bsvc/1","projects":[{"name":"declared"}]}');
  await bsvc('apply', ['--schema']);
  await bsvc('apply', ['-f', 'bsvc.json', '--dry-run']);
  await bsvc('apply', ['-f', 'bsvc.json']);
  await bsvc('file');
  await aboutFiles();
  await bsvc('doctor');
  await bsvc('doctor', ['--fix']);
  await bsvc('doctor', ['--repair', '--dry-run']);
  await bsvc('migrate');
  await bsvc('migrate', ['status']);
  await bsvc('completion', ['bash']);
  await bsvc('service install', ['--print']);
  await bsvc('service install', ['--out', 'units', '--worker']);
}

/** Only applications upload: the record of a file is put beside it. */
async function aboutFiles(): Promise<void> {
  const { id } = await bsvc<{ id: string }>('project show', ['shop']);
  const engine = openEngine({ dataDir: env.BSVC_DATA_DIR!, durability: 'relaxed' });
  const path = `${id}/00000000-0000-4000-8000-000000000000_a.txt`;
  const now = new Date();
  const file = { projectId: new ObjectId(id), path, name: 'a.txt', contentType: 'text/plain', size: 1, place: 'local' };
  await engine
    .db('bsvc')
    .collection('files')
    .insertOne({
      _id: new ObjectId(),
      ...file,
      declaredSize: null,
      state: 'confirmed',
      createdAt: now,
      confirmedAt: now,
    });
  await engine.close();
  await bsvc('file', ['--name', 'A.TXT']);
  await bsvc('file', ['--delete', path, '--yes']);
}

/** What changes or replaces everything comes late. */
async function aboutTheStore(): Promise<void> {
  await Promise.all([runService('serve', ['--port', '0']), runService('worker', [])]);
  await bsvc('secrets rotate', ['--tokens', '--grace', '0s']);
  await bsvc('secrets rotate');
  await bsvc('backup', ['--out', 'all.backup']);
  await bsvc('backup', ['--list', '--to', '.']);
  await bsvc('restore', ['all.backup', '--verify']);
  await bsvc('restore', ['all.backup', '--yes']);
}

/** A command that nothing above has called is called as its first example says. */
async function aboutExamples(): Promise<void> {
  for (const { words, load } of LEAVES) {
    if (outcomes.has(words) || words === 'move-to') continue;
    const [example = ''] = (await load()).default.examples;
    await bsvc(words, example.split(' ').slice(1 + words.split(' ').length));
  }
}

/** The store is not to be used after it. */
async function aboutLeaving(): Promise<void> {
  const { uri } = await elsewhere.listen('127.0.0.1:0');
  await bsvc('move-to', [uri, '--dry-run']);
  await bsvc('move-to', [uri]);
}

function listLeaves(nodes: readonly CommandNode[], path: readonly string[] = []): (CommandEntry & { words: string })[] {
  return nodes.flatMap((node) => {
    const here = [...path, node.name];
    return node.commands ? listLeaves(node.commands, here) : [{ ...node, words: here.join(' ') }];
  });
}

describe('the bsvc binary with --json', () => {
  it.each(LEAVES)('$words: one JSON value on stdout and nothing else anywhere', ({ words }) => {
    const all = outcomes.get(words) ?? [];
    expect(all.length, 'a command without a call above is called by its first example').toBeGreaterThan(0);
    for (const { code, stdout, stderr } of all) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^[^\u001b]+\n$/);
      // Of `data query` some are of --watch.
      const values = words === 'data query' ? stdout.trimEnd().split('\n') : [stdout];
      for (const value of values) expect(JSON.parse(value)).toBeTypeOf('object');
    }
  });

  it('shows no secret that it was given, and stores none as it is', async () => {
    const canary = /canary-|re_canary/;
    const events = SECRETS.EVENTS_SECRET.slice('whsec_'.length);
    for (const [words, all] of outcomes) {
      for (const { stdout } of all) expect({ words, shown: canary.exec(stdout)?.[0] }).toEqual({ words });
    }
    const entries = await readdir(dir.path, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) {
      const text = await readFile(file, 'latin1');
      expect({ file, held: canary.exec(text)?.[0] }).toEqual({ file });
      expect({ file, held: text.includes(events) }).toEqual({ file, held: false });
    }
  });
});
