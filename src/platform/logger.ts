import { pino, type Logger as PinoLogger } from 'pino';

export type Logger = PinoLogger;

export interface LoggerOptions {
  level: string;
  /** `json` for machines, `text` for a person at a terminal. */
  format: 'json' | 'text';
}

/** Where log lines go. Standard error by default: standard output carries results only. */
export interface LogSink {
  write(line: string): void;
}

// What must never be written even when somebody logs a whole object by mistake.
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
  const target = options.format === 'text' ? { write: (line: string) => sink.write(presentLine(line)) } : sink;
  return pino(
    { level: options.level, base: undefined, redact: { paths: SECRET_PATHS, censor: '[secret]' } },
    target as { write(line: string): void },
  );
}

const LEVEL_NAMES: Record<number, string> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};

function presentLine(json: string): string {
  const { level, time, msg, err, ...rest } = JSON.parse(json) as Record<string, unknown> & { err?: { stack?: string } };
  const clockTime = new Date(Number(time)).toISOString().slice(11, 23);
  const fields = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const head = `${clockTime} ${(LEVEL_NAMES[Number(level)] ?? String(level)).padEnd(5)} ${[msg, ...fields].filter((part) => part !== undefined).join(' ')}`;
  return err?.stack ? `${head}\n${err.stack}\n` : `${head}\n`;
}
