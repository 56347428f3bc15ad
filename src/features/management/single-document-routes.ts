import { withHooks } from '../access/describe-access.js';
import type { App } from '../../app.js';
import {
  type Access,
  created,
  encoded,
  envelope,
  mountedAt,
  ok,
  parameter,
  route,
  wholeNumberParameter,
} from '../../http/routes/route.js';
import {
  arrayOf,
  FLAG,
  ID,
  integer,
  MOMENT,
  object,
  oneOf,
  orNull,
  TEXT,
  WHOLE,
} from '../../platform/schema/schema.js';
import { tenantOfCaller } from '../access/caller.js';
import { projectOwner } from '../access/operator-access.js';
import { ownAddress } from '../access/own-origin.js';
import { GET_DOCUMENT } from '../documents/read-routes.js';
import { findHistory } from '../documents/read/find-history.js';
import { type EncodedReply, wrapReply } from '../documents/reply/encoded-reply.js';
import { DOCUMENT, SHOWN_DOCUMENT } from '../documents/reply/document-schema.js';
import { ETAG } from '../documents/reply/with-tag.js';
import { DELETE_DOCUMENT, INSERT_DOCUMENT, RECOVER_DOCUMENT, UPDATE_DOCUMENT } from '../documents/write-routes.js';
import { recoverDocument } from '../documents/write/recover-document.js';
import { trashDocument } from '../documents/write/trash-document.js';
import { requireWriteTarget, type WriteTarget } from '../documents/write/write-target.js';
import { listAttached, MAX_ATTACHED } from '../files/attached/list-attached.js';
import { FILE_FIELDS } from './file-routes.js';
import { inCollection, type InCollection, READS } from './view-as.js';
import { AppError } from '../../errors.js';

const MAX_DOCUMENTS_AT_ONCE = 500;
const AT_ONCE = 10;

interface WrittenEach {
  done: string[];
  refused: { id: string; code: string; message: string }[];
}

/**
 * Writes documents one by one, some at the same time; returns which were refused and why, in the order of the ids. An
 * unexpected error ends it: earlier ones are written.
 */
async function writeEach(ids: readonly string[], write: (id: string) => Promise<unknown>): Promise<WrittenEach> {
  const outcome: WrittenEach = { done: [], refused: [] };
  const wanted = [...new Set(ids)];
  for (let at = 0; at < wanted.length; at += AT_ONCE) {
    const some = wanted.slice(at, at + AT_ONCE);
    const refusals = await Promise.all(some.map((id) => write(id).then(() => null, asError)));
    some.forEach((id, place) => {
      const refusal = refusals[place];
      if (refusal) outcome.refused.push({ id, code: refusal.code, message: refusal.message });
      else outcome.done.push(id);
    });
  }
  return outcome;
}

function asError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  throw error;
}

const PATH = '/api/projects/:projectId/collections/:collection/documents';

const HISTORY = object(
  {
    isKept: { ...FLAG, description: 'False if the collection has no change log yet.' },
    since: { ...orNull(MOMENT), description: 'The oldest change in the log.' },
    items: arrayOf(
      object({
        at: MOMENT,
        change: oneOf('created', 'changed', 'removed'),
        before: { ...orNull(SHOWN_DOCUMENT), description: 'The document before the change, as far as it was kept.' },
        isPartial: { ...FLAG, description: 'Whether fields may be missing from `before`.' },
      }),
    ),
    next: { ...orNull(WHOLE), description: 'Send it as `before` in the next request; null at the end.' },
  },
  'DocumentHistory',
);

const ATTACHED_FILE = object(
  { ...FILE_FIELDS, link: { ...orNull(TEXT), description: 'Null if its storage no longer exists.' } },
  'FileOfDocument',
);

/** An owner who writes documents, recorded under the words of the command; the documents are not written down. */
function writes(action: string): Access<InCollection & { target: WriteTarget }> {
  const access = withHooks(inCollection(projectOwner(action, { withoutBody: true })));
  return {
    ...access,
    async give(app, ctx) {
      const given = await access.give!(app, ctx);
      const target = await requireWriteTarget(app, given.caller, given.collection.name);
      await app.replies.room(tenantOfCaller(given.caller));
      return { ...given, target };
    },
  };
}

const IDS = object({ ids: arrayOf(ID, { minItems: 1, maxItems: MAX_DOCUMENTS_AT_ONCE }) });
const EACH = object(
  { done: arrayOf(ID), refused: arrayOf(object({ id: ID, code: TEXT, message: TEXT })) },
  'DocumentsOneByOne',
);

const forEach = (
  path: 'trash' | 'recover',
  { id, summary, answer }: { id: string; summary: string; answer: string },
  write: (app: App, target: WriteTarget, document: string) => Promise<unknown>,
) =>
  route(`POST ${PATH}/${path}`, {
    id,
    summary,
    description: 'Errors are returned for each document; the others are processed.',
    access: writes('data delete'),
    command: path === 'trash' ? 'data delete' : 'data delete --undo',
    body: IDS,
    example: { ids: ['66f0c0ffee0ddba11c0de001'] },
    answers: ok(EACH, answer),
    handle: ({ app, target, body: { ids } }) => writeEach(ids, (document) => write(app, target, document)),
  });

/** Single documents, for operators. Those with a fixed last word come first: no id is one. */
export const SINGLE_DOCUMENT_ROUTES = [
  mountedAt(`POST ${PATH}`, INSERT_DOCUMENT, writes('data insert'), {
    answers: { ...created(DOCUMENT, 'Document stored'), headers: ETAG },
  }),
  forEach(
    'trash',
    { id: 'trashDocuments', summary: `Move up to ${MAX_DOCUMENTS_AT_ONCE} documents to the trash`, answer: 'Trashed' },
    trashDocument,
  ),
  forEach(
    'recover',
    {
      id: 'recoverDocuments',
      summary: `Restore up to ${MAX_DOCUMENTS_AT_ONCE} documents from the trash`,
      answer: 'Recovered',
    },
    recoverDocument,
  ),
  mountedAt(`GET ${PATH}/:document`, GET_DOCUMENT, READS, {
    answers: { ...encoded(envelope(SHOWN_DOCUMENT), 'The document'), headers: ETAG },
    present: (reply) => wrapReply('{"success":true,"data":', reply as EncodedReply, ',"message":"Document"}'),
  }),
  route(`GET ${PATH}/:document/history`, {
    id: 'showHistory',
    summary: 'List the changes of a document, newest first',
    description:
      'From the change log, so older changes and parts of large documents are missing. On MongoDB it has little more than times. One request examines 50,000 changes of the collection; send `next` as `before` to continue.',
    access: READS,
    query: {
      before: parameter('`next` of the previous response', integer({ minimum: 1, maximum: 999_999_999_999 })),
      limit: wholeNumberParameter('Number of changes', 25, { max: 100 }),
    },
    answers: ok(HISTORY, 'History of the document'),
    errors: { 400: ['INVALID_QUERY'] },
    async handle({ app, collection, params, query: { before, limit } }) {
      return findHistory(app, collection, params.document, { before: before ?? null, limit });
    },
  }),
  route(`GET ${PATH}/:document/files`, {
    id: 'listDocumentFiles',
    summary: `List up to ${MAX_ATTACHED} files of a document, with links valid for ten minutes`,
    access: READS,
    answers: ok(object({ items: arrayOf(ATTACHED_FILE) }), 'Files of the document'),
    errors: { 503: ['STORAGE_UNAVAILABLE', 'STORAGE_REFUSED'] },
    async handle({ app, ctx, project, collection, params }) {
      return { items: await listAttached(app, project, collection, params.document, ownAddress(app, ctx)) };
    },
  }),
  mountedAt(`PATCH ${PATH}/:document`, UPDATE_DOCUMENT, writes('data update'), {
    answers: { ...ok(DOCUMENT, 'Document changed'), headers: ETAG },
    present: (returned) => (returned as { data: unknown }).data,
  }),
  mountedAt(`DELETE ${PATH}/:document`, DELETE_DOCUMENT, writes('data delete')),
  mountedAt(`PATCH ${PATH}/:document/recover`, RECOVER_DOCUMENT, writes('data delete'), {
    command: 'data delete --undo',
  }),
];
