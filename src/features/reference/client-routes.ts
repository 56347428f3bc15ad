import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { missing } from '../../errors.js';
import { PUBLIC, route, type RouteList } from '../../http/routes/route.js';
import { PACKAGE_ROOT } from '../../package.js';
import { text, type Schema } from '../../platform/schema/schema.js';
import { fileAnswers } from '../../http/routes/prepared-file.js';
import { servePage } from './machine-routes.js';

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
  description: string,
  schema?: Schema,
): RouteList {
  return {
    prefix: `/api/${name}`,
    tag: 'Service',
    rate: 'plain',
    routes: [
      route(`GET /api/${name}`, {
        id,
        summary,
        description: 'Has the version of this server.',
        access: PUBLIC,
        ...fileAnswers(description, type, schema),
        errors: { 404: ['NOT_FOUND'] },
        async handle({ ctx }) {
          const isText = type.startsWith('text/');
          const file = { type: isText ? `${type}; charset=utf-8` : type, compress: isText };
          await servePage(ctx, `client ${name}`, () => readBuilt(name), file);
          ctx.vary('Origin');
        },
      }),
    ],
  };
}

const BYTES = text({ contentMediaType: 'application/octet-stream' });

/** The client that always fits this server. Public: contains no stored data. */
export const CLIENT_ROUTES: readonly RouteList[] = [
  clientRoute(
    'client.js',
    'getClient',
    'The client as an ES module',
    'text/javascript',
    '`import { createClient } from "…/api/client.js"`',
  ),
  clientRoute(
    'client-accounts.js',
    'getClientAccounts',
    'The part of the client that it loads when it is needed',
    'text/javascript',
    'What few pages call: factors, passkeys, invitations, files, batches, mail, …',
  ),
  clientRoute(
    'client-tabs.js',
    'getClientTabs',
    'The part of the client by which tabs share a stream',
    'text/javascript',
    'Loaded in browsers by the first `follow`',
  ),
  clientRoute(
    'client-react.js',
    'getClientReact',
    'Hooks of React for the client',
    'text/javascript',
    '`useUser`, `useFollow` and `useDocument`; imports `react`',
  ),
  clientRoute(
    'client-rxdb.js',
    'getClientRxdb',
    'Replication of RxDB with a project',
    'text/javascript',
    '`replicateBsvc`; imports `rxdb/plugins/replication`',
  ),
  clientRoute(
    'client-tanstack.js',
    'getClientTanstack',
    'Collections of TanStack DB that follow a project',
    'text/javascript',
    '`bsvcCollectionOptions`',
  ),
  clientRoute(
    'client-offline.js',
    'getClientOffline',
    'A local database for the client',
    'text/javascript',
    '`openOfflineStore`; see the guide “Offline”',
  ),
  clientRoute('client.d.ts', 'getClientTypes', 'The types of the client', 'text/plain', 'A declaration file'),
  clientRoute(
    'client.tgz',
    'getClientPackage',
    'The client as a package',
    'application/gzip',
    'For `npm install …/api/client.tgz`; named `@bsvc/client`',
    BYTES,
  ),
];
