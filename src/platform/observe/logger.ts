import { pino, type Logger as PinoLogger } from 'pino';

export type Logger = PinoLogger;

export interface LoggerOptions {
  level: string;
  /** `json` for machines, `text` for a person at a terminal. */
  format: 'json' | 'text';
}

/** The destination of log lines. Standard error by default: standard output carries results only. */
export interface LogSink {
  write(line: string): void;
  /** Level of the line that comes next, for a sink that asks for it. */
  lastLevel?: number;
}

export interface GatheringSink extends LogSink {
  /** Writes at once what has been gathered. */
  flush(): void;
}

const GATHER_MS = 100;
const GATHER_CHARACTERS = 64 * 1024;
const INFO = 30;
const WARN = 40;
/** The key under which pino gives a sink the level of the line that it is about to write. */
const TELL_LEVEL = Symbol.for('pino.metadata');

/**
 * A sink that writes the lines of a tenth of a second together: each by itself would cost a request a quarter more.
 * Warnings and errors are written at once, with what came before them; a process that is killed takes at most that
 * tenth of a second of other lines along.
 */
export function gatherLines(sink: LogSink): GatheringSink {
  let gathered = '';
  let timer: NodeJS.Timeout | null = null;
  const gathering = {
    [TELL_LEVEL]: true,
    lastLevel: 0,
    write(line: string): void {
      gathered += line;
      if (gathering.lastLevel >= WARN || gathered.length > GATHER_CHARACTERS) gathering.flush();
      else timer ??= setTimeout(gathering.flush, GATHER_MS).unref();
    },
    flush: (): void => {
      if (timer) clearTimeout(timer);
      timer = null;
      const text = gathered;
      gathered = '';
      if (text !== '') sink.write(text);
    },
  };
  return gathering;
}

// Fields that must never be written, even if a whole object is logged by mistake.
const SECRET_PATHS = [
  'password',
  'token',
  'secret',
  'authorization',
  'apiKey',
  'accessToken',
  'refreshToken',
  '*.password',
  '*.token',
  '*.secret',
  '*.authorization',
  '*.apiKey',
  '*.accessToken',
  '*.refreshToken',
  '*["x-api-key"]',
  '*["x-refresh-token"]',
  '*.cookie',
];

/** A pino logger with secrets redacted; the text format prints one short line per event. */
export function openLogger(options: LoggerOptions, sink: LogSink = process.stderr): Logger {
  const target = options.format === 'text' ? presentTo(sink) : sink;
  return pino(
    { level: options.level, base: undefined, redact: { paths: SECRET_PATHS, censor: '[secret]' } },
    target as { write(line: string): void },
  );
}

/** The input from which pino makes a line. */
interface PinoParts {
  [pino.symbols.streamSym]: LogSink;
  [pino.symbols.timeSym]: () => string;
  /** The beginning of a line by its level. */
  [pino.symbols.lsCacheSym]: Record<number, string>;
  [pino.symbols.chindingsSym]: string;
}

/** Writes a line of fields that are JSON text already: `"a":1,"b":"c"`. */
export type FieldWriter = (fields: string) => void;

/**
 * Lines of the level `info` without a look at each field: what pino does to find out what the same few fields are costs
 * a request more than its counting and limiting together. Null where that level is off.
 */
export function openFieldWriter(log: Logger): FieldWriter | null {
  if (!log.isLevelEnabled('info')) return null;
  // Pino's types name these symbols, but not what is under them.
  const own = log as unknown as PinoParts;
  const sink = own[pino.symbols.streamSym];
  const opening = own[pino.symbols.lsCacheSym][INFO]!;
  const bindings = own[pino.symbols.chindingsSym];
  return (fields) => {
    if (sink.lastLevel !== undefined) sink.lastLevel = INFO;
    sink.write(`${opening}${own[pino.symbols.timeSym]()}${bindings},${fields}}\n`);
  };
}

/** Passes everything on to the sink, the lines in words for a person. */
function presentTo(sink: LogSink): LogSink {
  return {
    [TELL_LEVEL]: true,
    get lastLevel() {
      return sink.lastLevel ?? INFO;
    },
    set lastLevel(level: number) {
      sink.lastLevel = level;
    },
    write: (line) => sink.write(presentLine(line)),
  } as LogSink;
}

const LEVEL_NAMES: Record<number, string> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};

/** A line as pino writes it. */
interface LogLine {
  level: number;
  time: number;
  msg?: string;
  err?: { stack?: string };
  [field: string]: unknown;
}

function presentLine(json: string): string {
  const { level, time, msg, err, ...rest } = JSON.parse(json) as LogLine;
  const clockTime = new Date(time).toISOString().slice(11, 23);
  const fields = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const head = `${clockTime} ${(LEVEL_NAMES[level] ?? String(level)).padEnd(5)} ${[msg, ...fields].filter((part) => part !== undefined).join(' ')}`;
  return err?.stack ? `${head}\n${err.stack}\n` : `${head}\n`;
}
