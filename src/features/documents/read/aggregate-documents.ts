import type { Document } from 'bson';
import type { App } from '../../../app.js';
import { invalid } from '../../../errors.js';
import { findVisibility, readFilter, type ReadScope } from '../../access/access-rules.js';
import { type Caller, tenantOfCaller } from '../../access/caller.js';
import { exceedsSetLimit, MAX_SETS } from '../../access/rules/access-sets.js';
import { documentsName, type Collection } from '../../collections/collection.js';
import { requireCollection } from '../../collections/collection-store.js';
import { isJsonObject } from '../../collections/fields/field-type.js';
import { documentStore } from '../store/document-store.js';
import { encodeResults } from '../reply/encode-results.js';
import { guardPipeline, joinedNames } from '../pipeline/guard-pipeline.js';
import { visibleDocuments } from '../store/document.js';
import type { PipelineSource } from '../pipeline/pipeline-literals.js';
import { pipelineError } from '../reply/query-errors.js';
import { type ExplainedList, readExplained } from './list-documents.js';
import type { EncodedReply } from '../reply/encoded-reply.js';
import { timeRead } from './time-read.js';
import { MAX_REPLY_BYTES, readInTurn, type ReplySize } from '../reply/reply-size.js';

/**
 * Runs a client's pipeline over what the caller may see (rest-api.md 4.2, decisions.md 5). 400 for a blocked or
 * malformed pipeline and for one that takes too long or yields too much; 404 for an unknown collection, also a joined
 * one; 401 without a user where one of them is private or its rule asks for one; 503 BUSY when too many are waiting,
 * for a turn or for room of a large reply. The documents come as a JSON array. Ends when `signal` aborts.
 */
export async function aggregateDocuments(
  app: App,
  caller: Caller,
  collectionName: string,
  pipeline: unknown,
  { includeDeleted, signal }: { includeDeleted: boolean; signal: AbortSignal },
): Promise<EncodedReply> {
  const { collection, guarded } = await openPipeline(app, caller, collectionName, pipeline, includeDeleted);
  try {
    return await readInTurn(app.aggregations, app.replies, tenantOfCaller(caller), signal, (size) =>
      readResults(app, collection, guarded, { size, signal }),
    );
  } catch (error) {
    throw pipelineError(error, signal);
  }
}

/**
 * How the pipeline's own collection is read for its first stages; it waits for its turn, ends and throws as
 * aggregateDocuments does. What the other stages do, joins among it, is not said.
 */
export async function explainPipeline(
  app: App,
  caller: Caller,
  collectionName: string,
  pipeline: unknown,
  { includeDeleted, signal }: { includeDeleted: boolean; signal: AbortSignal },
): Promise<ExplainedList> {
  const { collection, guarded } = await openPipeline(app, caller, collectionName, pipeline, includeDeleted);
  const options = { maxTimeMS: app.config.queryTimeoutMs, signal };
  const explain = async (): Promise<ExplainedList> =>
    readExplained(await documentStore(app, collection).aggregate(guarded, options).explain());
  try {
    return await app.aggregations.run(tenantOfCaller(caller), explain, signal);
  } catch (error) {
    throw pipelineError(error, signal);
  }
}

/** The collection, and the pipeline as it runs for the caller. */
async function openPipeline(
  app: App,
  caller: Caller,
  collectionName: string,
  pipeline: unknown,
  includeDeleted: boolean,
): Promise<{ collection: Collection; guarded: Document[] }> {
  const collection = await requireCollection(app, caller.project._id, collectionName);
  const sourceOf = (joined: Collection, conditions?: () => Document[]): Promise<PipelineSource> =>
    visibleSource(app, joined, caller, { trash: includeDeleted, conditions });
  const own = await sourceOf(collection, () => firstMatch(pipeline));
  const read = [collection];
  const joined = new Map<string, PipelineSource | Error>();
  for (const name of joinedNames(pipeline)) {
    joined.set(
      name,
      await requireCollection(app, caller.project._id, name)
        .then((found) => {
          read.push(found);
          if (exceedsSetLimit(read, caller, includeDeleted)) throw tooManySets();
          return sourceOf(found);
        })
        .catch((error: unknown) => error as Error),
    );
  }
  return { collection, guarded: guardWith(joined, pipeline, own) };
}

function tooManySets(): Error {
  return invalid(
    'INVALID_PIPELINE',
    `The rules of the joined collections name more than ${MAX_SETS} sets together: join fewer collections at once`,
  );
}

/** What all documents that a pipeline reads of its own collection meet, by its first stage as the client wrote it. */
function firstMatch(pipeline: unknown): Document[] {
  const first: unknown = Array.isArray(pipeline) ? pipeline[0] : null;
  return isJsonObject(first) && isJsonObject(first.$match) ? [first.$match] : [];
}

/**
 * The guarded pipeline. Errors of the pipeline itself come before errors of a collection that it joins.
 */
function guardWith(
  joined: ReadonlyMap<string, PipelineSource | Error>,
  pipeline: unknown,
  own: PipelineSource,
): Document[] {
  let refusal: Error | undefined;
  const guarded = guardPipeline(pipeline, own, (name) => {
    const found = joined.get(name) ?? new Error(`a join was overlooked: ${name}`);
    if (!(found instanceof Error)) return found;
    refusal ??= found;
    return own;
  });
  if (refusal) throw refusal;
  return guarded;
}

async function visibleSource(
  app: App,
  collection: Collection,
  caller: Caller,
  scope: ReadScope,
): Promise<PipelineSource> {
  const readable = await readFilter(app, collection, caller, scope);
  const visibility = await findVisibility(app, collection, caller);
  const active = visibleDocuments(scope.trash);
  return {
    collection,
    storedName: documentsName(collection),
    visible: readable ? { $and: [readable, active] } : active,
    isRestricted: readable !== null,
    unseen: visibility?.restricted ?? NONE,
  };
}

const NONE: ReadonlySet<string> = new Set();

function readResults(
  app: App,
  collection: Collection,
  pipeline: Document[],
  options: { size: ReplySize; signal: AbortSignal },
): Promise<EncodedReply> {
  const first = pipeline.findIndex((stage) => !('$match' in stage));
  const matched = pipeline.slice(0, first < 0 ? undefined : first).map((stage) => stage['$match'] as Document);
  const collect = (): Promise<EncodedReply> => collectResults(app, collection, pipeline, options);
  // A $geoNear reads by its index.
  if (matched.length === 0) return collect();
  const isWhole = !pipeline.some((stage) => '$limit' in stage || '$sample' in stage);
  const asked = { command: 'aggregate', filter: { $and: matched }, sort: {} } as const;
  return timeRead(app, collection, asked, collect, () => isWhole);
}

async function collectResults(
  app: App,
  collection: Collection,
  pipeline: Document[],
  { size, signal }: { size: ReplySize; signal: AbortSignal },
): Promise<EncodedReply> {
  const { aggregateLimit, queryTimeoutMs } = app.config;
  const cursor = documentStore(app, collection).aggregate([...pipeline, { $limit: aggregateLimit + 1 }], {
    maxTimeMS: queryTimeoutMs,
    allowDiskUse: false,
    raw: true,
    signal,
    // With `raw` the driver hands out bytes, of which its types know nothing.
  }) as unknown as AsyncIterable<Buffer> & { close(): Promise<void> };
  const results: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const result of cursor) {
      bytes += result.length;
      if (results.length === aggregateLimit) {
        throw tooMuch(`more than ${aggregateLimit} documents: add a $limit stage, or group further`);
      }
      if (bytes > MAX_REPLY_BYTES) {
        throw tooMuch(`more than ${MAX_REPLY_BYTES} bytes: add $limit or $project stages`);
      }
      size.add(result.length);
      results.push(result);
    }
  } finally {
    await cursor.close();
  }
  if (!size.isLarge) return [...encodeResults(results)].join('');
  return { parts: encodeResults(results), release: () => size.release() };
}

const tooMuch = (text: string): Error => invalid('RESULT_TOO_LARGE', `The pipeline yields ${text}`);
