import type { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import type * as mongodb from 'mongodb';

type Driver = typeof mongodb;

/** The part we use of the driver's own connection, which it does not export. */
interface Connection extends EventEmitter {
  readonly closed: boolean;
  writeCommand: (command: unknown, options: { signal?: AbortSignal }) => Promise<void>;
}

let loaded: Promise<Driver> | undefined;

/**
 * The official driver, loaded when it is first asked for, with one fault mended. Every client of the service comes from
 * here.
 */
export function loadDriver(): Promise<Driver> {
  return (loaded ??= import('mongodb').then((driver) => {
    endWritesOfClosedConnections(driver);
    return driver;
  }));
}

/**
 * A command whose bytes do not leave at once waits for them to drain, in driver 7.9 still for ever when the connection
 * closes in that time: a request then never ends, and if it is the monitor's own question, no server is ever found
 * again. Here the closing ends the waiting.
 */
function endWritesOfClosedConnections({ MongoNetworkError }: Driver): void {
  const inner = createRequire(import.meta.url)('mongodb/lib/cmap/connection.js') as {
    Connection: { prototype: Connection };
  };
  const { prototype } = inner.Connection;
  const write = prototype.writeCommand;
  const closings = new WeakMap<Connection, AbortSignal>();
  const signalClosing = (connection: Connection): AbortSignal => {
    const closing = new AbortController();
    const abort = (): void => closing.abort(new MongoNetworkError('the connection closed while a command was written'));
    if (connection.closed) abort();
    else connection.once('close', abort);
    closings.set(connection, closing.signal);
    return closing.signal;
  };
  prototype.writeCommand = function (command, options) {
    const closing = closings.get(this) ?? signalClosing(this);
    const signal = options.signal ? AbortSignal.any([options.signal, closing]) : closing;
    return write.call(this, command, { ...options, signal });
  };
}
