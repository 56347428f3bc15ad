import type { CheckTime } from '../../collections/fields/constraints/constraint-rows.js';
import { invalid, type AppError, type FieldProblem } from '../../../errors.js';

const MAX_LISTED = 50;
/** Keys that a client invented can be a megabyte long; a refusal is not. */
const MAX_SHOWN = 300;
/** Steps of matching patterns for one body: some 40 ms at worst. */
const MAX_PATTERN_STEPS = 2_000_000;

/**
 * Gathers what is wrong with a body. The path of the value in hand is kept as a stack, so that a value without problems
 * builds no text.
 */
export class Problems {
  readonly #listed: FieldProblem[] = [];
  readonly #path: (string | number)[] = [];

  #steps = 0;

  constructor(prefix: readonly string[] = []) {
    this.#path.push(...prefix);
  }

  enter(part: string | number): void {
    this.#path.push(part);
  }

  leave(): void {
    this.#path.pop();
  }

  /** Notes a broken rule of the value in hand, or of `part` in it. `text` follows the field's path. */
  add(rule: string, text: string, part?: string): void {
    if (this.#listed.length >= MAX_LISTED) return;
    const path = (part === undefined ? this.#path : [...this.#path, part]).join('.');
    const field = path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN)}…` : path;
    this.#listed.push({ field, rule, message: `${field} ${text}` });
  }

  /** The moment for which values are checked, null for stored ones, and what their patterns may still cost. */
  at(now: number | null): CheckTime {
    return { now, afford: (steps) => (this.#steps += steps) <= MAX_PATTERN_STEPS };
  }

  take(problems: Problems): void {
    this.#listed.push(...problems.#listed.slice(0, MAX_LISTED - this.#listed.length));
  }

  /** Full: looking further would only cost time. */
  get full(): boolean {
    return this.#listed.length >= MAX_LISTED;
  }

  get first(): FieldProblem | undefined {
    return this.#listed[0];
  }

  /** All of them in one line, or null when there are none. */
  get summary(): string | null {
    return this.#listed.length > 0 ? this.#listed.map(({ message }) => message).join('; ') : null;
  }

  throwIfAny(): void {
    if (this.#listed.length > 0) throw validationFailed(this.#listed);
  }
}

/** The 400 of rest-api.md 2.4: the first problem is the message, all are the details. */
function validationFailed(problems: FieldProblem[]): AppError {
  return invalid('VALIDATION_FAILED', `Validation failed: ${problems[0]!.message}`, { details: problems });
}
