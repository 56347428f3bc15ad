import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listen } from '../helpers/listen.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const PACKAGE = join(import.meta.dirname, '..', '..', 'dist', 'client', 'client.tgz');

const dir = use(await openTempDir());
const target = join(dir.path, 'node_modules', '@bsvc', 'client');
mkdirSync(target, { recursive: true });
execFileSync('tar', ['-xzf', PACKAGE, '-C', target, '--strip-components=1']);

/** What the local database takes, and one mistake a line. */
const OFFLINE = `import { createClient } from '@bsvc/client';
import { openOfflineStore } from '@bsvc/client/offline';
const store = openOfflineStore('notes', {
  collections: ['notes'],
  onConflict: ({ mine, theirs, base }) => (theirs.updatedAt === base.updatedAt ? mine : undefined),
});
export const api = createClient({ url: '', key: '', offline: store });
store.onEvent((event) => {
  if (event.type === 'conflict') return event.theirs._id.length;
  return event.type === 'queue' ? event.pending + store.pending : event.type === 'refused' && event.error.status;
});
// @ts-expect-error
store.onEvent((event) => event.type === 'nothing');
// @ts-expect-error
openOfflineStore(1);
// @ts-expect-error
createClient({ url: '', key: '', offline: 'notes' });
`;

const write = (name: string, text: string): string => {
  const path = join(dir.path, name);
  writeFileSync(path, text);
  return path;
};
const node = (name: string, text: string) => spawnSync(process.execPath, [write(name, text)], { encoding: 'utf8' });

describe('the package of the client', () => {
  it.each(['mjs', 'cjs'])('runs as a %s module, the part without streams too', (kind) => {
    const load = (name: string): string => (kind === 'cjs' ? `require('${name}')` : `await import('${name}')`);
    const { stdout, stderr } = node(
      `load.${kind}`,
      `const [all, core] = [${load('@bsvc/client')}, ${load('@bsvc/client/core')}];
       console.log(typeof all.createClient, typeof all.ApiError, typeof core.createCoreClient);`,
    );
    expect([stdout, stderr]).toEqual(['function function function\n', '']);
  });

  it.each(['mjs', 'cjs'])(
    'loads the rest of accounts when it is called, with the one class of errors, in %s',
    (kind) => {
      const load = kind === 'cjs' ? "require('@bsvc/client')" : "await import('@bsvc/client')";
      const { stdout, stderr } = node(
        `late.${kind}`,
        `const { createClient, ApiError } = ${load};
       const { auth } = createClient({ url: 'http://127.0.0.1', key: 'pk_live_x' });
       const say = (error) => console.log(error instanceof ApiError, error.code);
       auth.verify('no token!').then(console.log)
         .then(() => auth.passkeys.signIn()).catch(say)
         .then(() => auth.invites.withdraw('..')).catch(say);`,
      );
      expect([stdout, stderr]).toEqual(['null\ntrue NETWORK\ntrue INVALID_NAME\n', '']);
    },
  );

  it('says when the rest of accounts cannot be loaded, and tries again', () => {
    const away = join(dir.path, 'node_modules', '@bsvc', 'client', 'client-accounts.js');
    const { stdout, stderr } = node(
      'gone.mjs',
      `import { renameSync } from 'node:fs';
       import { createClient, ApiError } from '@bsvc/client';
       const { auth } = createClient({ url: 'http://127.0.0.1', key: 'pk_live_x' });
       renameSync('${away}', '${away}.away');
       await auth.verify('no token!').catch((error) => console.log(error instanceof ApiError, error.code));
       renameSync('${away}.away', '${away}');
       console.log(await auth.verify('no token!'));`,
    );
    expect([stdout, stderr]).toEqual(['true NETWORK\nnull\n', '']);
  });

  it.each([
    { resolution: 'Node16' as const, names: ['use.cts', 'use.mts'] },
    { resolution: 'Bundler' as const, names: ['use.ts'] },
    { resolution: 'Bundler' as const, names: ['offline.ts'], text: OFFLINE },
  ])(
    'has types for $names as $resolution resolves them',
    ({ resolution, names, text }: { resolution: 'Node16' | 'Bundler'; names: string[]; text?: string }) => {
      const types = `import { createClient } from '@bsvc/client';
      export const api = createClient({ url: 'http://127.0.0.1', key: 'pk_live_x' });`;
      const program = ts.createProgram(
        names.map((name) => write(name, text ?? types)),
        {
          module: resolution === 'Node16' ? ts.ModuleKind.Node16 : ts.ModuleKind.ESNext,
          moduleResolution: ts.ModuleResolutionKind[resolution],
          target: ts.ScriptTarget.ES2022,
          lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
          types: [],
          strict: true,
          noEmit: true,
          skipLibCheck: false,
          skipDefaultLibCheck: true,
        },
      );
      expect(ts.getPreEmitDiagnostics(program).map(({ messageText }) => messageText)).toEqual([]);
    },
  );
});

describe('the adapters of the package', () => {
  it.each([
    { name: 'offline', exports: ['Conflict', 'OfflineEvent', 'openOfflineStore'], peers: [], limit: 8192 },
    { name: 'react', exports: ['useDocument', 'useFollow', 'useUser'], peers: ['react'], limit: 1024 },
    { name: 'rxdb', exports: ['newId', 'replicateBsvc'], peers: ['rxdb/plugins/replication'], limit: 2048 },
    { name: 'tanstack', exports: ['bsvcCollectionOptions', 'newId'], peers: [], limit: 2048 },
  ])('$name imports its peer and nothing else, in $limit bytes', ({ name, exports, peers, limit }) => {
    const folder = join(dir.path, 'node_modules', '@bsvc', 'client');
    const bytes = readFileSync(join(folder, `client-${name}.js`));
    const imports = [...bytes.toString().matchAll(/(?:from|import)\s*\(?"([^"]+)"/g)].map(([, from]) => from);
    expect(imports).toEqual(peers);
    expect(gzipSync(bytes, { level: 9 }).length).toBeLessThanOrEqual(limit);
    const program = ts.createProgram([join(folder, `client-${name}.d.ts`)], {});
    const module = program.getSourceFile(join(folder, `client-${name}.d.ts`))!;
    const shown = program.getTypeChecker().getExportsOfModule(program.getTypeChecker().getSymbolAtLocation(module)!);
    expect(shown.map((symbol) => symbol.name)).toEqual(expect.arrayContaining(exports));
    const { exports: entries, peerDependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      exports: Record<string, unknown>;
      peerDependencies: Record<string, string>;
    };
    expect(entries[`./${name}`]).toEqual({
      import: { types: `./client-${name}.d.ts`, default: `./client-${name}.js` },
    });
    for (const peer of peers) expect(Object.keys(peerDependencies)).toContain(peer.split('/')[0]);
  });
});

describe('the client where there is no crypto', () => {
  let server: Server;
  let close: () => Promise<unknown>;
  let url: string;
  const keys: unknown[] = [];
  beforeAll(async () => {
    server = createServer((request, response) => {
      keys.push(request.headers['idempotency-key']);
      response.writeHead(201, { 'content-type': 'application/json' }).end('{"_id":"1"}');
    });
    ({ url, close } = await listen(server));
  });
  afterAll(() => close());

  it('inserts with a key of its own for each request, and says what social sign-in lacks', async () => {
    const script = write(
      'bare.mjs',
      `Object.defineProperty(globalThis, 'crypto', { value: undefined });
       const { createClient } = await import('@bsvc/client');
       const api = createClient({ url: '${url}', key: 'pk_live_x' });
       await api.collection('notes').insert({ text: 'one' });
       await api.collection('notes').insert({ text: 'two' });
       await api.auth.socialUrl('google').catch(({ name, code }) => console.log(name, code));`,
    );
    const child = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    for await (const text of child.stdout) output += String(text);
    expect(output).toBe('ApiError NO_CRYPTO\n');
    expect(keys).toEqual([expect.stringMatching(/^[\da-f]{32}$/), expect.stringMatching(/^[\da-f]{32}$/)]);
    expect(keys[0]).not.toBe(keys[1]);
  });
});
