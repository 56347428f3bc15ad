import type { Db, Document } from 'mongodb';

/** A read of a stored collection, as it was asked for. */
export interface AskedRead {
  readonly command: 'find' | 'count' | 'aggregate';
  /** The stored collection's name. */
  readonly name: string;
  readonly filter: Document;
  readonly sort: Readonly<Record<string, 1 | -1>>;
}

/** How it went. */
interface TimedRead extends AskedRead {
  readonly tookMs: number;
  /** Nothing was left to be read: there were fewer documents than might have been answered, or all were counted. */
  readonly isOver: boolean;
}

type Conditions = readonly { readonly path: string; readonly op: string }[];

/** As the embedded engine reports a long read. */
interface ToldRead {
  readonly command: TimedRead['command'];
  readonly ns: string;
  readonly conditions: Conditions;
  readonly sort: readonly { readonly path: string; readonly descending: boolean }[];
  readonly index: string | null;
}

/** Shapes remembered at most; a client could ask for any number of fields. */
const MAX_SHAPES = 200;
/** How long a plan's verdict is believed: an index may have been made, or documents added. */
const VERDICT_MS = 600_000;
const EXPLAIN_MS = 1_000;
const MANY_DOCUMENTS = 10_000;
/** MongoDB's code for a read that its time limit ended. */
const TIME_LIMIT = 50;

/** A plan that goes through everything: by which index, and whether all of it is sorted afterwards. */
interface WholePlan {
  readonly index: string | null;
  readonly sorts: boolean;
}

interface Verdict {
  readonly until: number;
  /** Null: the read uses an index, the collection is small, or it is unknown. */
  readonly plan: Promise<WholePlan | null>;
}

/**
 * Reports reads of a MongoDB that looked at more than 10,000 documents, which its replies do not say. Of a read that
 * took long the plan is asked for, once for each shape, one at a time and without running it again; the read is told of
 * when that plan goes through everything, the collection is as large, and the read cannot have stopped on the way.
 */
export class SlowReads {
  /** Faster reads are not asked about: 10,000 documents take some 20 ms in memory, a network some as well. */
  static leastMs = 100;
  /** Null: no notification is wanted. */
  listen: ((read: ToldRead) => void) | null = null;
  private readonly verdicts = new Map<string, Verdict>();
  /** The last question: the next one waits for its answer. */
  private asked: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly db: Db,
    /** The conditions of a filter by path. */
    private readonly describe: (filter: Document) => Promise<Conditions>,
  ) {}

  /**
   * Runs a read; what has to be asked about it is asked in the background, and a refusal ends that without a word. One
   * that its time limit ended counts as over.
   */
  async time<T>(read: AskedRead, run: () => Promise<T>, isOver: (answer: T) => boolean): Promise<T> {
    const startMs = performance.now();
    const note = (over: boolean): void => this.note({ ...read, tookMs: performance.now() - startMs, isOver: over });
    try {
      const answer = await run();
      note(isOver(answer));
      return answer;
    } catch (error) {
      if ((error as { code?: unknown }).code === TIME_LIMIT) note(true);
      throw error;
    }
  }

  private note(timed: TimedRead): void {
    if (this.listen === null || timed.tookMs < SlowReads.leastMs) return;
    this.judge(timed).catch(() => undefined);
  }

  private async judge({ command, name, filter, sort, isOver }: TimedRead): Promise<void> {
    const conditions = await this.describe(filter);
    const order = Object.entries(sort).map(([path, direction]) => ({ path, descending: direction === -1 }));
    const shape = JSON.stringify([name, conditions, order]);
    let verdict = this.verdicts.get(shape);
    if (verdict === undefined || verdict.until < performance.now()) {
      if (verdict === undefined && this.verdicts.size >= MAX_SHAPES) return;
      const plan = this.asked.then(() => this.findWholePlan(name, filter, sort)).catch(() => null);
      verdict = { until: performance.now() + VERDICT_MS, plan };
      this.asked = plan;
      this.verdicts.set(shape, verdict);
    }
    const plan = await verdict.plan;
    if (plan === null || !(isOver || plan.sorts)) return;
    this.listen?.({ command, ns: `${this.db.databaseName}.${name}`, conditions, sort: order, index: plan.index });
  }

  /** Null when less than everything is read, or everything is not much. */
  private async findWholePlan(name: string, filter: Document, sort: TimedRead['sort']): Promise<WholePlan | null> {
    if (this.listen === null) return null;
    const documents = await this.db.collection(name).estimatedDocumentCount({ maxTimeMS: EXPLAIN_MS });
    // Closed since: a question would connect again.
    if (documents <= MANY_DOCUMENTS || this.listen === null) return null;
    // With this verbosity nothing is run, but for trials between several indexes.
    const told = await this.db.command({
      explain: { find: name, filter, sort },
      verbosity: 'queryPlanner',
      maxTimeMS: EXPLAIN_MS,
    });
    const { winningPlan } = (told as { queryPlanner?: { winningPlan?: unknown } }).queryPlanner ?? {};
    const stages = stagesOf(winningPlan);
    const sorts = stages.some(({ stage }) => stage === 'SORT');
    if (stages.some(({ stage }) => stage === 'COLLSCAN')) return { index: null, sorts };
    const scan = stages.find(({ stage }) => stage === 'IXSCAN');
    const isFetched = stages.some(({ stage }) => stage === 'FETCH');
    return scan !== undefined && isFetched && isUnbounded(scan) ? { index: String(scan['indexName']), sorts } : null;
  }
}

/** The stages of a plan, wherever a server of this version puts them, outermost first. */
function stagesOf(plan: unknown): Document[] {
  if (typeof plan !== 'object' || plan === null) return [];
  const below = Object.values(plan).flatMap(stagesOf);
  return typeof (plan as Document)['stage'] === 'string' ? [plan, ...below] : below;
}

function isUnbounded({ indexBounds }: Document): boolean {
  const bounds = Object.values((indexBounds ?? {}) as Record<string, readonly string[]>);
  return bounds.length > 0 && bounds.every(([first, ...others]) => others.length === 0 && isEverything(first));
}

function isEverything(interval: unknown): boolean {
  return interval === '[MinKey, MaxKey]' || interval === '[MaxKey, MinKey]';
}
