import { RE2JS } from 're2js';
import { merged, overlap, PatternReader, type CharSet, type PatternPosition } from './pattern-reader.js';

/** The verdict on a pattern. */
export interface PatternVerdict {
  /** The cost of compiling it, in positions (`readPattern`). */
  positions: number;
  /** The rest of a sentence that says why it may not be used; null = it may. */
  problem: string | null;
}

/** Positions of one pattern: 1,000 repetitions of a character, as many as RE2 takes, a few times over. */
export const MAX_PATTERN_POSITIONS = 4000;
const MAX_REMEMBERED = 500;
const verdicts = new Map<string, PatternVerdict>();

/**
 * Judges whether a pattern compiles, and whether a backtracking matcher (MongoDB's) could take time exponential, or a
 * high power, in the text's length. Verdicts are remembered; patterns that are slow to judge are refused first
 * (decision 12).
 */
export function judgePattern(pattern: string): PatternVerdict {
  const known = verdicts.get(pattern);
  if (known) {
    // The one that was asked for longest ago is forgotten first.
    verdicts.delete(pattern);
    verdicts.set(pattern, known);
    return known;
  }
  const verdict = judge(pattern);
  if (verdicts.size >= MAX_REMEMBERED) verdicts.delete(verdicts.keys().next().value!);
  verdicts.set(pattern, verdict);
  return verdict;
}

function judge(pattern: string): PatternVerdict {
  const { positions, isAmbiguous } = readPattern(pattern);
  return { positions, problem: positions > MAX_PATTERN_POSITIONS ? null : findProblem(pattern, isAmbiguous) };
}

function findProblem(pattern: string, isAmbiguous: () => boolean): string | null {
  try {
    RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
  } catch {
    return 'is not a usable pattern: check its brackets and escapes; look-around and back-references are not supported';
  }
  return isAmbiguous()
    ? 'could take too long: it repeats something that can match the same text in several ways, as in (a+)+ or (a|ab)*'
    : null;
}

/** Loops in a row that can share a text: the power of its length that matching may cost. */
const MAX_LOOPS_IN_A_ROW = 4;
/** Undecided choices outside of loops, as in a?a?a?aaa: each may double the work. */
const MAX_CHOICES = 12;
/** The cost of compiling a pattern, and whether matching it may explode. */
interface PatternShape {
  /** Characters and empty parts once all counts are written out: what compiling it takes grows with them. */
  positions: number;
  /**
   * Backtracking over the pattern may explode: inside a loop, two ways lead on with the same character (which every
   * exponential pattern has), too many loops in a row can share a text, too many choices stay open, or there are too
   * many ways to tell. Errs on the side of true.
   */
  isAmbiguous: () => boolean;
}

/**
 * The shape of a pattern of RE2 syntax; of any other text the number of positions only is of use. Takes time linear in
 * the text and its edges.
 */
function readPattern(pattern: string): PatternShape {
  const reader = new PatternReader(pattern);
  const { size } = reader.read();
  return { positions: size, isAmbiguous: () => reader.isTangled || explodes(reader.positions) };
}

function explodes(positions: readonly PatternPosition[]): boolean {
  const loops = findLoops(positions);
  let choices = 0;
  for (const { index, next } of positions) {
    const ways = mostAtOnce(next);
    if (ways < 2) continue;
    const loop = loops[index];
    if (loop && mostAtOnce(next.filter((other) => loops[other.index] === loop)) > 1) return true;
    choices += Math.log2(ways);
    if (choices > MAX_CHOICES) return true;
  }
  return longestRunOfLoops(positions, loops) > MAX_LOOPS_IN_A_ROW;
}

/** The largest number of these places that can take one and the same character. */
function mostAtOnce(positions: readonly PatternPosition[]): number {
  if (positions.length < 2) return positions.length;
  const ranges = positions.flatMap(({ set }) => set);
  const starts = Float64Array.from(ranges, ([low]) => low).sort();
  const ends = Float64Array.from(ranges, ([, high]) => high).sort();
  let most = 0;
  for (let started = 0, ended = 0; started < starts.length; started++) {
    while (ends[ended]! < starts[started]!) ended++;
    most = Math.max(most, started + 1 - ended);
  }
  return most;
}

/** Places each of which can come after each of the others, and after itself. */
interface Loop {
  members: PatternPosition[];
  /** The characters that its members take. */
  set: CharSet;
}

/**
 * The loop of each position, by index; null for one that never comes again (Tarjan's strongly connected components).
 */
function findLoops(positions: readonly PatternPosition[]): (Loop | null)[] {
  const loops = new Array<Loop | null>(positions.length).fill(null);
  const order = new Int32Array(positions.length);
  const lowest = new Int32Array(positions.length);
  const isOpen = new Uint8Array(positions.length);
  const open: PatternPosition[] = [];
  let visited = 0;
  const visit = (start: PatternPosition): void => {
    const way: { position: PatternPosition; at: number }[] = [];
    const enter = (position: PatternPosition): void => {
      order[position.index] = lowest[position.index] = ++visited;
      isOpen[position.index] = 1;
      open.push(position);
      way.push({ position, at: 0 });
    };
    enter(start);
    while (way.length > 0) {
      const step = way.at(-1)!;
      const { index, next } = step.position;
      if (step.at < next.length) {
        const to = next[step.at++]!;
        if (order[to.index] === 0) enter(to);
        else if (isOpen[to.index]) lowest[index] = Math.min(lowest[index]!, order[to.index]!);
        continue;
      }
      way.pop();
      const from = way.at(-1)?.position.index;
      if (from !== undefined) lowest[from] = Math.min(lowest[from]!, lowest[index]!);
      if (lowest[index] !== order[index]) continue;
      const members = open.splice(open.lastIndexOf(step.position));
      for (const member of members) isOpen[member.index] = 0;
      if (members.length === 1 && !next.includes(step.position)) continue;
      const loop = { members, set: merged(members.flatMap(({ set }) => set)) };
      for (const member of members) loops[member.index] = loop;
    }
  };
  for (const position of positions) if (order[position.index] === 0) visit(position);
  return loops;
}

/** Loops can share a text when the way from one to the next takes only characters that the first one repeats. */
function longestRunOfLoops(positions: readonly PatternPosition[], loops: readonly (Loop | null)[]): number {
  const memo = new Map<Loop, number>();
  const runFrom = (loop: Loop): number => {
    const known = memo.get(loop);
    if (known !== undefined) return known;
    let longest = 0;
    const open = loop.members.flatMap(({ next }) => next);
    const seen = new Set<PatternPosition>();
    for (let position = open.pop(); position; position = open.pop()) {
      const other = loops[position.index]!;
      if (seen.has(position) || other === loop) continue;
      seen.add(position);
      if (!overlap(loop.set, position.set)) continue;
      if (other) longest = Math.max(longest, runFrom(other));
      open.push(...position.next.filter((next) => other === null || loops[next.index] !== other));
    }
    memo.set(loop, longest + 1);
    return longest + 1;
  };
  return Math.max(0, ...positions.map(({ index }) => loops[index]).map((loop) => (loop ? runFrom(loop) : 0)));
}
