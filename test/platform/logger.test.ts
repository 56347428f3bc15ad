import { describe, expect, it, vi } from 'vitest';
import { gatherLines, openFieldWriter, openLogger } from '../../src/platform/observe/logger.js';

function openGathered(format: 'json' | 'text') {
  const written: string[] = [];
  const lines = gatherLines({ write: (text) => written.push(text) });
  return { written, lines, log: openLogger({ level: 'info', format }, lines) };
}

describe('gatherLines', () => {
  it('writes the lines of a moment together', () => {
    vi.useFakeTimers();
    try {
      const { written, log } = openGathered('json');
      log.info('first');
      log.info('second');
      expect(written).toEqual([]);
      vi.advanceTimersByTime(100);
      expect(written).toHaveLength(1);
      expect(
        written[0]!
          .trimEnd()
          .split('\n')
          .map((line) => (JSON.parse(line) as { msg: string }).msg),
      ).toEqual(['first', 'second']);
    } finally {
      vi.useRealTimers();
    }
  });

  it.each(['json', 'text'] as const)('writes warnings at once, after what came before them, as %s', (format) => {
    const { written, log } = openGathered(format);
    log.info('before');
    expect(written).toEqual([]);
    log.warn('now');
    expect(written).toHaveLength(1);
    expect(written[0]).toMatch(/before[^]*now/);
  });

  it('writes what is left when it is told that the process ends', () => {
    const { written, lines, log } = openGathered('text');
    log.info('last');
    lines.flush();
    lines.flush();
    expect(written).toEqual([expect.stringContaining('last')]);
  });
});

describe('openFieldWriter', () => {
  const FIELDS = '"path":"/a","ms":1.5,"msg":"request"';

  it.each(['json', 'text'] as const)('writes the same line as the logger, as %s', (format) => {
    vi.useFakeTimers();
    try {
      const { written, lines, log } = openGathered(format);
      const part = log.child({ part: 'http' });
      part.info({ path: '/a', ms: 1.5 }, 'request');
      openFieldWriter(part)!(FIELDS);
      lines.flush();
      const [first, second] = written[0]!.trimEnd().split('\n');
      expect(first).toContain('/a');
      expect(second).toBe(first);
    } finally {
      vi.useRealTimers();
    }
  });

  it('is gathered like the lines of the logger, also behind a warning', () => {
    const { written, log } = openGathered('text');
    log.warn('now');
    openFieldWriter(log)!(FIELDS);
    expect(written).toHaveLength(1);
  });

  it('is not there where lines of its level are not written', () => {
    const log = openLogger({ level: 'warn', format: 'json' }, { write: () => undefined });
    expect(openFieldWriter(log)).toBeNull();
  });
});
