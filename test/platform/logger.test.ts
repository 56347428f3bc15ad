import { describe, expect, it, vi } from 'vitest';
import { gatherLines, openLogger } from '../../src/platform/observe/logger.js';

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
