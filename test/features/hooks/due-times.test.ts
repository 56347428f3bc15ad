import { describe, expect, it } from 'vitest';
import { readDueTimes } from '../../../src/features/hooks/schedule.js';
import { openRandom, type Random } from '../../helpers/random.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Zones with the day before a change of their clocks: by an hour, by half of one, at midnight, backwards in spring. */
const CHANGES: [zone: string, from: string][] = [
  ['UTC', '2026-03-28T00:00:00Z'],
  ['Europe/Berlin', '2026-03-28T00:00:00Z'],
  ['Europe/Berlin', '2026-10-24T00:00:00Z'],
  ['America/New_York', '2026-03-07T12:00:00Z'],
  ['America/New_York', '2026-10-31T12:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-03T12:00:00Z'],
  ['Australia/Lord_Howe', '2026-10-02T12:00:00Z'],
  ['America/Sao_Paulo', '2018-11-03T00:00:00Z'],
  ['America/Sao_Paulo', '2018-02-17T00:00:00Z'],
  ['Asia/Kathmandu', '2026-05-01T00:00:00Z'],
  ['Europe/Dublin', '2026-10-24T00:00:00Z'],
];

/** The times of an expression, the first ones after a moment. */
function list(cron: string, timeZone: string, from: string, count: number): string[] {
  const dueTimes = readDueTimes(cron, timeZone);
  let at: number | null = Date.parse(from);
  const found: string[] = [];
  while (found.length < count && (at = dueTimes.after(at)) !== null) found.push(new Date(at).toISOString());
  return found.map((each) => each.slice(0, 16));
}

describe('the times of a cron expression', () => {
  it('are those of its time zone, in summer and in winter', () => {
    expect(list('0 3 * * *', 'Europe/Berlin', '2026-03-27T12:00:00Z', 3)).toEqual([
      '2026-03-28T02:00',
      '2026-03-29T01:00',
      '2026-03-30T01:00',
    ]);
    expect(list('30 9 * * MON-FRI', 'UTC', '2026-01-02T12:00:00Z', 2)).toEqual([
      '2026-01-05T09:30',
      '2026-01-06T09:30',
    ]);
  });

  it('that do not occur are the first moment after the gap, once', () => {
    expect(list('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 2)).toEqual([
      '2026-03-29T01:00',
      '2026-03-30T00:30',
    ]);
    expect(list('*/10 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 2)).toEqual([
      '2026-03-29T01:00',
      '2026-03-30T00:00',
    ]);
  });

  it('that occur twice count the first time; expressions for every hour go on', () => {
    expect(list('*/30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', 3)).toEqual([
      '2026-10-25T00:00',
      '2026-10-25T00:30',
      '2026-10-26T01:00',
    ]);
    expect(list('*/30 * * * *', 'Europe/Berlin', '2026-10-24T23:45:00Z', 4)).toEqual([
      '2026-10-25T00:00',
      '2026-10-25T00:30',
      '2026-10-25T01:00',
      '2026-10-25T01:30',
    ]);
  });

  it.each([
    ['* * * * * *', 'five fields'],
    ['*/10 * * * * *', 'five fields'],
    ['@daily', 'five fields'],
    ['2026-12-01T00:00:00', 'five fields'],
    ['', 'five fields'],
    ['0 24 * * *', 'cannot be read'],
    ['*/0 * * * *', 'cannot be read'],
    ['1,,2 * * * *', 'cannot be read'],
    ['0 0 30 2 *', 'no moment that will ever come'],
    ['0-59 '.repeat(5).trim().replace('0-59', '0-59,'.repeat(50)), 'five fields'],
  ])('%j is refused', (cron, why) => {
    expect(() => readDueTimes(cron, 'UTC')).toThrow(why);
  });

  it.each(['Berlin', 'Europe/Nowhere', '+02:00', '', 'constructor', '../etc'])('time zone %j is refused', (zone) => {
    expect(() => readDueTimes('0 3 * * *', zone)).toThrow('is no time zone');
  });

  it.each([20_261_129, 20_261_130, 20_261_131])('agree with the clocks on the wall (seed %i)', (seed) => {
    const random = openRandom(seed);
    for (let round = 0; round < 40; round++) {
      const [zone, from] = random.pick(CHANGES);
      const cron = generateCron(random);
      const [fromMs, toMs] = [Date.parse(from), Date.parse(from) + 3 * DAY];
      const dueTimes = readDueTimes(cron, zone);
      const found: number[] = [];
      for (let at = dueTimes.after(fromMs); at !== null && at < toMs; at = dueTimes.after(at)) found.push(at);
      const said = `${cron} in ${zone} from ${from} (seed ${seed}, round ${round})`;
      expect({ said, times: found.map(shown) }).toEqual({
        said,
        times: onTheWall(cron, zone, fromMs, toMs).map(shown),
      });
      expect(found.every((at, index) => index === 0 || at - found[index - 1]! >= MINUTE)).toBe(true);
    }
  });
});

const shown = (ms: number): string => new Date(ms).toISOString();

function generateCron(random: Random): string {
  const field = (last: number): string => {
    const one = (): number => random.below(last + 1);
    const [a, b] = [one(), one()].sort((x, y) => x - y) as [number, number];
    const forms = [
      '*',
      `*/${1 + random.below(last)}`,
      `${a}`,
      `${a},${b}`,
      `${a}-${b}`,
      `${a}-${b}/${1 + random.below(5)}`,
    ];
    return random.pick(forms);
  };
  const hour = random.chance(0.5) ? random.pick(['0', '1', '2', '1-3', '0,2', '0-3/2', '23,0']) : field(23);
  return `${field(59)} ${hour} * * ${random.pick(['*', '*', '0', '6', '0,6'])}`;
}

interface Wall {
  day: number;
  hour: number;
  minute: number;
  /** The same however often it occurs. */
  label: number;
}

/** The times of an expression as somebody would note them who looks at a clock every minute. */
function onTheWall(cron: string, timeZone: string, fromMs: number, toMs: number): number[] {
  const [minutes, hours, , , days] = cron.split(' ').map((field, at) => listValues(field, [59, 23, 31, 12, 6][at]!));
  const matches = ({ day, hour, minute }: Wall): boolean => minutes!.has(minute) && hours!.has(hour) && days!.has(day);
  const goesOn = cron.split(' ')[1]!.startsWith('*');
  const look = openClock(timeZone);
  const seen = new Set<number>();
  const found: number[] = [];
  let before = look(fromMs - DAY - MINUTE);
  for (let at = fromMs - DAY; at < toMs; at += MINUTE) {
    const wall = look(at);
    const skipped: Wall[] = [];
    for (let label = before.label + MINUTE; label < wall.label; label += MINUTE) skipped.push(readWall(label));
    const isDue = goesOn
      ? matches(wall)
      : (matches(wall) && !seen.has(wall.label)) || skipped.some((each) => matches(each));
    if (isDue && at > fromMs) found.push(at);
    seen.add(wall.label);
    before = wall;
  }
  return found;
}

function openClock(timeZone: string): (ms: number) => Wall {
  const format = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  return (ms) => readWall(Date.parse(`${format.format(ms).replace(' ', 'T')}Z`));
}

function readWall(label: number): Wall {
  const date = new Date(label);
  return { day: date.getUTCDay(), hour: date.getUTCHours(), minute: date.getUTCMinutes(), label };
}

function listValues(field: string, last: number): Set<number> {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/');
    const [from = 0, to = part.includes('-') || range === '*' ? last : from] =
      range === '*' ? [0, last] : range.split('-').map(Number);
    for (let value = from; value <= to; value += Number(step)) values.add(value);
  }
  return values;
}
