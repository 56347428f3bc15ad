import type { ApiError } from '../api-error.js';
import type { FollowEvent } from '../stream.js';
import type { Fields } from './change.js';
import type { Doc } from './replica.js';
import type { Plain, LocalSession, Tools } from './session.js';

/** Which documents, and how they are read and shown. */
export interface WatchOptions {
  filter?: Fields;
  fields?: readonly string[];
  sort?: string | readonly string[];
  limit?: number;
  since?: string;
  populate?: readonly string[];
  page?: number;
  cursor?: string;
  includeDeleted?: unknown;
  onError?: (error: ApiError) => void;
}

/** What documents of a collection some options show, sorted. */
type Select = (documents: ReadonlyMap<string, Doc>) => Doc[];

export interface Watches {
  /** Null for options that only the service can carry out. */
  read: (options: WatchOptions) => Select | null;
  follow: (collection: string) => unknown;
  /** Something of a collection has changed. */
  show: (collection: string) => void;
  /** It is another user's. */
  startOver: () => void;
}

/** Followers of what is on this device; where that ends, of the service. */
export function openWatches(plain: Plain, tools: Tools, current: () => Promise<LocalSession | null>): Watches {
  const watches = new Set<{ of: string; begin(): void; look(): void; clear(): void }>();

  const read = (options: WatchOptions): Select | null => {
    const { filter, fields, sort = '-createdAt', populate, since, cursor, includeDeleted } = options;
    const plainFilter = filter && (tools.toPlain(filter, 'filter', true) as Fields);
    const test = populate || since || cursor || includeDeleted ? null : readFilter(plainFilter);
    if (!test) return null;
    const names = fields?.map((field) => field.split('.')[0]!);
    const projected = new WeakMap<Doc, Doc>();
    const project = (document: Doc): Doc => {
      if (!names) return document;
      const kept = projected.get(document) ?? pick(document, names);
      projected.set(document, kept);
      return kept;
    };
    return (documents) =>
      tools.inOrder([...documents.values()].filter(test), typeof sort === 'string' ? [sort] : sort).map(project);
  };

  /** Shows what matches until it is told to stop, on the device as long as something is kept there. */
  const watch = (
    of: string,
    select: Select,
    show: (documents: Doc[]) => void,
    followService: () => () => void,
  ): (() => void) => {
    let stop: (() => void) | undefined;
    /** Undefined until it is open; null where this device keeps nothing. */
    let session: LocalSession | null | undefined;
    let last: Doc[] | undefined;
    const each = {
      of,
      begin(): void {
        stop?.();
        stop = session = undefined;
        void current().then(async (opened) => {
          session = opened;
          await opened?.want(of).catch(() => undefined);
          each.look();
        });
      },
      look(): void {
        if (stop || session === undefined || !watches.has(each)) return;
        if (!session || session.isOnline(of)) {
          stop = followService();
        } else if (session.isShown(of)) {
          const next = select(session.shown(of));
          if (last?.length === next.length && next.every((document, at) => document === last![at])) return;
          show((last = next));
        }
      },
      clear(): void {
        if (last?.length) show([]);
        last = undefined;
      },
    };
    watches.add(each);
    each.begin();
    return () => {
      watches.delete(each);
      stop?.();
    };
  };

  const changed = new Set<string>();
  return {
    read,
    follow(of) {
      const service = plain.collection(of).follow as never as Record<'set', (...words: unknown[]) => () => void> &
        ((...words: unknown[]) => () => void);
      const shown = (
        options: WatchOptions,
        show: (documents: Doc[]) => void,
        followService: () => () => void,
      ): (() => void) => {
        const select = read(options);
        if (!select) return followService();
        return watch(of, (documents) => select(documents).slice(0, options.limit), show, followService);
      };
      const follow = (options: WatchOptions, listener: (event: FollowEvent<Doc>) => void): (() => void) => {
        let told = new Map<string, Doc>();
        const show = (documents: Doc[]): void => {
          const next = new Map(documents.map((document) => [document._id, document]));
          const at = new Date().toISOString();
          for (const [id, document] of next) {
            if (told.get(id) !== document) listener({ type: 'upsert', id, at, document });
          }
          for (const id of told.keys()) if (!next.has(id)) listener({ type: 'gone', id, at });
          told = next;
          listener({ type: 'ready' });
        };
        return shown(options, show, () => service(options, listener));
      };
      follow.set = (options: WatchOptions, show: (documents: Doc[]) => void): (() => void) =>
        shown(options, show, () => service.set(options, show));
      return follow;
    },
    show(collection) {
      // Several changes that come at once are shown at once.
      if (changed.size === 0) {
        setTimeout(() => {
          const all = new Set(changed);
          changed.clear();
          // What one of them throws disturbs nobody else.
          for (const each of watches) if (all.has(each.of)) queueMicrotask(() => each.look());
        });
      }
      changed.add(collection);
    },
    startOver() {
      for (const each of watches) {
        each.clear();
        each.begin();
      }
    },
  };
}

const pick = (document: Doc, names: readonly string[]): Doc =>
  Object.fromEntries(Object.entries(document).filter(([name]) => name === '_id' || names.includes(name))) as Doc;

type Scalar = string | number | boolean;
type Test = (document: Fields) => boolean;

/** Comparisons by the end of a parameter's name: what others come to, only the service knows. */
const FORMS: Readonly<Record<string, (value: unknown, given: Scalar) => boolean>> = {
  gt: (value, given) => order(value, given) > 0,
  gte: (value, given) => order(value, given) >= 0,
  lt: (value, given) => order(value, given) < 0,
  lte: (value, given) => order(value, given) <= 0,
  startswith: (value, given) => typeof value === 'string' && value.startsWith(String(given)),
};
const FORM = /^(.+?)_(gte?|lte?|ne|in|exists|startswith|regex|near|within)$/;

/** NaN, which is neither less nor more, for what has no order. */
function order(value: unknown, given: Scalar): number {
  if (typeof value === 'number') return value - Number(given);
  if (typeof value !== 'string') return NaN;
  return value < String(given) ? -1 : Number(value > String(given));
}

/** As a query has them: text. */
const isScalar = (value: unknown): value is Scalar => /string|number|boolean/.test(typeof value);
const isEqual = (value: unknown, given: Scalar): boolean => isScalar(value) && String(value) === String(given);

/** Every value at a path, the items of lists too. */
function valuesAt(value: unknown, [part, ...rest]: readonly string[]): unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, part === undefined ? [] : [part, ...rest]));
  return part === undefined ? [value] : valuesAt((value as Fields | null | undefined)?.[part], rest);
}

/**
 * A filter of a list as a test of documents; null for one that the service has to carry out, or to refuse. Dates are
 * texts in it already.
 */
function readFilter(filter: Fields = {}): Test | null {
  const tests: Test[] = [];
  for (const [name, given] of Object.entries(filter)) {
    const test = readCondition(name, given);
    if (!test) return null;
    tests.push(test);
  }
  return (document) => tests.every((test) => test(document));
}

function readCondition(name: string, given: unknown): Test | null {
  const list = Array.isArray(given) ? (given as unknown[]) : [given];
  if (list.length === 0) return null;
  if (name === 'or' && typeof list[0] === 'object') {
    const tests = list.map((each) => readFilter(each as Fields));
    return tests.includes(null) ? null : (document) => tests.some((test) => test!(document));
  }
  const values = list.filter(isScalar);
  if (values.length < list.length) return null;
  const [, path = name, form = ''] = FORM.exec(name) ?? [];
  const parts = path.split('.');
  const found = (document: Fields): unknown[] => valuesAt(document, parts);
  const isAny: Test = (document) => found(document).some((value) => values.some((each) => isEqual(value, each)));
  if (form === '' || form === 'in') return isAny;
  if (form === 'ne') return (document) => !isAny(document);
  if (form === 'exists') {
    return (document) => found(document).some((value) => value !== undefined) === (String(given) === 'true');
  }
  const compare = FORMS[form];
  return compare ? (document) => found(document).some((value) => compare(value, values[0]!)) : null;
}
