import type { Database } from './database.js';
import type { SpanOptions, Telemetry } from '../observe/telemetry.js';

/**
 * The same database with a span for each command: named after the operation and what is stored there, never after what
 * was asked for.
 */
export function traceDatabase(db: Database, telemetry: Telemetry): Database {
  const system = db.kind === 'mongodb' ? 'mongodb' : 'bsvc.engine';
  const note = async <T>(answer: Promise<T>, collection: string, operation: string, startMs: number): Promise<T> => {
    const options: SpanOptions = {
      kind: 'client',
      attributes: { 'db.system.name': system, 'db.operation.name': operation, 'db.collection.name': collection },
    };
    const name = `${operation} ${kindOf(collection)}`;
    try {
      const value = await answer;
      telemetry.note(name, options, startMs, undefined);
      return value;
    } catch (error) {
      telemetry.note(name, options, startMs, error);
      throw error;
    }
  };
  /**
   * A collection or, with the `operation` that made it, a cursor: whatever is a promise when it is called is a command.
   */
  const trace = <T extends object>(traced: T, collection: string, operation: string | null): T => {
    const proxy: T = new Proxy(traced, {
      get(target, property) {
        const member: unknown = Reflect.get(target, property);
        if (typeof member !== 'function') return member;
        return (...given: unknown[]) => {
          const startMs = performance.now();
          const answer: unknown = (member as (...given: unknown[]) => unknown).apply(target, given);
          if (answer === target) return proxy;
          if (answer instanceof Promise) return note(answer, collection, operation ?? String(property), startMs);
          return isCursor(answer) ? trace(answer, collection, operation ?? String(property)) : answer;
        };
      },
    });
    return proxy;
  };
  return {
    ...db,
    collection: (name, options) => trace(db.collection(name, options), name, null),
    // A span is for a command.
    findPoint: () => undefined,
    findPage: () => undefined,
    transform: (name, ...given) => note(db.transform(name, ...given), name, 'transform', performance.now()),
    transformTogether: (turns) =>
      note(db.transformTogether(turns), turns[0]?.collection ?? '', 'transform', performance.now()),
    transaction: (run, line) => note(db.transaction(run, line), 'several', 'transaction', performance.now()),
  };
}

/** Stored documents of tenants are one kind, as there may be thousands of collections. */
function kindOf(collection: string): string {
  return collection.startsWith('documents_') ? 'documents' : collection;
}

function isCursor(value: unknown): value is object {
  return typeof value === 'object' && value !== null && 'toArray' in value;
}
