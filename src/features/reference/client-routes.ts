import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { missing } from '../../errors.js';
import { own, parameter, PUBLIC, route, type RouteList } from '../../http/routes/route.js';
import { PACKAGE_ROOT } from '../../package.js';
import { text, TEXT, type Schema } from '../../platform/schema/schema.js';
import { makeReferenceFile, serveReferenceFile, type ReferenceFile } from './reference-file.js';

/** Made when they are first asked for. */
const files = new Map<string, Promise<ReferenceFile>>();

function readClientFile(name: string, type: string): Promise<ReferenceFile> {
  const known = files.get(name);
  if (known) return known;
  const file = makeReferenceFile(type, readBuilt(name), { compress: !name.endsWith('.tgz') });
  files.set(name, file);
  return file;
}

function readBuilt(name: string): Buffer {
  try {
    return readFileSync(join(PACKAGE_ROOT, 'dist', 'client', name));
  } catch (cause) {
    throw missing('NOT_FOUND', 'This installation has no client: build it with "npm run build"', { cause });
  }
}

function clientRoute(
  name: string,
  id: string,
  summary: string,
  type: string,
  answer: { description: string; schema: Schema },
): RouteList {
  const path = `/api/${name}`;
  return {
    prefix: path,
    tag: 'Service',
    routes: [
      route({
        method: 'GET',
        path,
        id,
        summary,
        description: 'Of the version of this server.',
        access: PUBLIC,
        headers: { 'if-none-match': parameter('`ETag` of a copy', TEXT) },
        answers: [
          own(200, answer.description, { [type]: answer.schema }, { ETag: 'Changes with the content' }),
          own(304, 'The copy is good'),
        ],
        refuses: { 404: ['NOT_FOUND'] },
        async handle({ ctx }) {
          const isText = type.startsWith('text/');
          serveReferenceFile(ctx, await readClientFile(name, isText ? `${type}; charset=utf-8` : type));
          ctx.vary('Origin');
        },
      }),
    ],
  };
}

const BYTES = text({ contentMediaType: 'application/octet-stream' });

/** The client that always fits this server. Open to everybody: it says nothing of what is stored. */
export const CLIENT_ROUTES: readonly RouteList[] = [
  clientRoute('client.js', 'getClient', 'The client as an ES module', 'text/javascript', {
    description: '`import { createClient } from "…/api/client.js"`',
    schema: TEXT,
  }),
  clientRoute('client.d.ts', 'getClientTypes', 'The types of the client', 'text/plain', {
    description: 'A declaration file',
    schema: TEXT,
  }),
  clientRoute('client.tgz', 'getClientPackage', 'The client as a package', 'application/gzip', {
    description: 'For `npm install …/api/client.tgz`; named `@bsvc/client`',
    schema: BYTES,
  }),
];
