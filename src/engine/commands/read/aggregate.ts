import { type Doc, isDocument, type Row } from '../../codec/document.js';
import { CODES, EngineError, failedToParse } from '../../errors.js';
import { type Budget, openBudget } from '../../pipeline/budget.js';
import { compilePipeline, type Pipeline } from '../../pipeline/compile.js';
import type { ExpressionContext } from '../../query/expression.js';
import { numberOf } from '../../query/values/value.js';
import { weigh } from '../../query/values/weight.js';
import type { Storage } from '../../storage/storage.js';
import { View } from '../../storage/view.js';
import { type Call, command, requireNamespace } from '../command.js';
import { answerLeadingStage } from '../diagnostics.js';
import { countMatching } from './count.js';
import type { RowSource } from './cursors.js';
import { listSource } from '../indexes.js';
import {
  anything,
  collationOption,
  countOption,
  cursorOption,
  givenDocument,
  ignored,
  type ValuesOf,
} from '../options.js';
import { openPace, type Pace, TOO_LONG_HERE } from '../pace.js';
import { readDocuments } from './read-documents.js';
import { isShortPipeline } from './short-pipeline.js';
import { readVariables } from './variables.js';

/** Results are computed documents, so their size is estimated; well below the 48 MB of a message. */
const MAX_BATCH_BYTES = 8 * 1024 * 1024;

const OPTIONS = {
  pipeline: anything,
  cursor: cursorOption,
  hint: anything,
  let: givenDocument,
  collation: collationOption,
  maxTimeMS: countOption(undefined),
  allowDiskUse: ignored,
  bypassDocumentValidation: ignored,
  batchSize: ignored,
};

export const aggregate = command({
  options: OPTIONS,
  leaves: true,
  async run(call, options, target) {
    const { storage, cursors } = call.core;
    const alone = numberOf(target) === 1;
    const ns = alone ? `${call.db}.$cmd.aggregate` : requireNamespace(call, target);
    if (options.cursor === undefined) {
      throw failedToParse("The 'cursor' option is required, except for aggregate with the explain argument");
    }
    const { batchSize } = options.cursor;
    const counted = alone ? null : await countOnly(call, ns, options);
    if (counted !== null) return { cursor: await cursors.begin(ns, listSource(counted), batchSize) };

    // Some stages and operators do much work on one document, where no clock is looked at.
    if (call.core.readers !== null && !isShortPipeline(options.pipeline)) throw TOO_LONG_HERE;
    const environment = readVariables(options.let, options.collation);
    const stages = answerLeadingStage(call, target, options.pipeline);
    const pipeline = compilePipeline(stages, environment === undefined ? {} : { environment });
    if (alone && !pipeline.startsAlone) {
      throw new EngineError(
        CODES.InvalidNamespace,
        "{aggregate: 1} is not valid for '$match'; a collection is required.",
      );
    }
    const pace = openPace(call, options.maxTimeMS);
    const source = new PipelineRows(storage, call.db, ns, pipeline, pace, environment, options.hint);
    return { cursor: await cursors.begin(ns, source, batchSize) };
  },
});

/** The rows of a pipeline, run as far as they are asked for. */
class PipelineRows implements RowSource {
  finished = false;
  private readonly results: AsyncIterator<Doc[]>;
  private waiting: Doc[] = [];
  /** Of the pipeline's own documents and of all that it joins. */
  private readonly view: View;

  constructor(
    storage: Storage,
    db: string,
    ns: string,
    pipeline: Pipeline,
    private readonly pace: Pace,
    environment: ExpressionContext | undefined,
    hint: unknown,
  ) {
    const view = new View(storage, 'aggregate');
    const budget = pacedBudget(pace, view);
    this.view = view;
    const { near, filter, sort, skip, limit, distinct } = pipeline.leading;
    const { fields } = pipeline;
    const own = pipeline.startsAlone
      ? nothing()
      : readDocuments(
          storage,
          ns,
          { near, filter, sort, skip, limit, distinct, fields, hint },
          budget,
          view,
          environment,
          pace,
        );
    const results = pipeline.run(own, {
      budget,
      open: (collection, options) =>
        readDocuments(
          storage,
          `${db}.${collection}`,
          {
            near: options.near ?? null,
            filter: options.filter ?? null,
            sort: options.sort ?? null,
            skip: options.skip ?? 0,
            limit: options.limit ?? null,
            fields: null,
          },
          budget,
          view,
          environment,
        ),
    });
    this.results = results[Symbol.asyncIterator]();
  }

  async next(most: number, signal?: AbortSignal): Promise<Row[]> {
    this.pace.resume(signal);
    const rows: Row[] = [];
    let size = 0;
    for (;;) {
      let taken = 0;
      while (taken < this.waiting.length && rows.length < most) {
        const doc = this.waiting[taken]!;
        size += weigh(doc);
        if (rows.length > 0 && size > MAX_BATCH_BYTES) break;
        rows.push(doc);
        taken++;
      }
      this.waiting = this.waiting.slice(taken);
      if (this.waiting.length > 0) break;
      const result = await this.results.next();
      if (result.done === true) {
        this.finished = true;
        this.view.release();
        break;
      }
      this.waiting = result.value;
    }
    if (!this.finished) this.view.hold();
    this.pace.suspend();
    return rows;
  }

  close(): void {
    this.finished = true;
    this.waiting = [];
    this.view.release();
    void this.results.return?.().catch(() => undefined);
  }
}

/**
 * The pipeline's budget with the command's own clock, which stands still while nobody asks for rows. What has been read
 * of `view` before a pause is what will be read of it afterwards.
 */
export function pacedBudget(pace: Pace, view: View): Budget {
  const budget = openBudget();
  return {
    ...budget,
    check() {
      budget.check();
      pace.check();
    },
    async pause() {
      view.hold();
      if (pace.mayLeave) await pace.rest();
      await budget.pause();
      pace.check();
    },
  };
}

async function* nothing(): AsyncGenerator<Doc[]> {
  // The pipeline makes its own documents.
}

/**
 * Answers the pipeline of the driver's `countDocuments` as a count: `$match`, `$skip`, `$limit`, then a `$group` of
 * everything with a sum of ones. Null for any other pipeline.
 */
async function countOnly(
  call: Call,
  ns: string,
  { pipeline, let: variables, hint, collation, maxTimeMS }: ValuesOf<typeof OPTIONS>,
): Promise<Doc[] | null> {
  if (!Array.isArray(pipeline) || variables !== undefined) return null;
  const stages = [...(pipeline as unknown[])];
  const group = stages.pop();
  const sum = isDocument(group) ? readCountingGroup(group['$group']) : null;
  if (sum === null) return null;
  const take = (name: string): unknown => {
    const stage = stages[0];
    if (!isDocument(stage) || Object.keys(stage).join() !== name) return undefined;
    stages.shift();
    return stage[name];
  };
  const query = take('$match') ?? {};
  const skip = take('$skip') ?? 0;
  const limit = take('$limit');
  if (stages.length > 0 || !isDocument(query)) return null;
  if (typeof skip !== 'number' || skip < 0 || (limit !== undefined && (typeof limit !== 'number' || limit < 1))) {
    return null;
  }
  const most = limit === undefined ? Infinity : skip + limit;
  const found = await countMatching(call, ns, { query, hint, collation, maxTimeMS }, most);
  const counted = Math.max(0, Math.min(found, most) - skip);
  return counted === 0 ? [] : [{ _id: sum.id, [sum.name]: counted }];
}

function readCountingGroup(group: unknown): { id: unknown; name: string } | null {
  if (!isDocument(group)) return null;
  const [first, name, ...more] = Object.keys(group);
  const id = group['_id'];
  if (first !== '_id' || name === undefined || more.length > 0 || (id !== null && id !== 1)) return null;
  const sum = group[name];
  return isDocument(sum) && Object.keys(sum).join() === '$sum' && sum['$sum'] === 1 ? { id, name } : null;
}
