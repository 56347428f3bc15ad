import { type Doc, isDocument } from '../../codec/document.js';
import { CODES, EngineError, failedToParse, refusal } from '../../errors.js';
import { Stopwatch } from '../values/stopwatch.js';

/** The state of one run: the document being worked on and the values of the variables. */
export interface Scope {
  /** `$$ROOT` */
  root: Doc;
  /** The variables' values by slot. */
  readonly vars: unknown[];
  /** `$$NOW`: one instant for the whole run. */
  readonly now: Date;
  /** Called now and then from loops inside one document; throws when the run's time is up. */
  readonly guard: (scope: Scope) => void;
  /** How many rounds those loops have made, and at how many the guard is called next. */
  rounds: number;
  nextLook: number;
}

/** Most items that an expression may visit or make, since all of them could be in memory at once. */
const DOCUMENT_ROUNDS = 50_000_000;
const ROUNDS_PER_LOOK = 16;

function tooLong(): EngineError {
  return new EngineError(CODES.MaxTimeMSExpired, 'an expression takes too long on one document');
}

/** Ends what takes too long on a single document, on top of the run's own limits. */
function openGuard(check: () => void): (scope: Scope) => void {
  let root: Doc | undefined;
  const watch = new Stopwatch();
  let startRounds = 0;
  return (scope) => {
    check();
    if (scope.root !== root) {
      ({ root, rounds: startRounds } = scope);
      watch.restart();
    } else if (scope.rounds - startRounds > DOCUMENT_ROUNDS || watch.isOver()) {
      throw tooLong();
    }
  };
}

function unlimited(): void {
  // Outside of pipelines only the time of a single document is limited.
}

/**
 * To be called by everything whose work grows with a value: with 1 in each round of a loop that runs an expression or
 * compares, or once with the number of items, which must not be more than an array may have.
 */
export function countRounds(scope: Scope, rounds = 1): void {
  scope.rounds += rounds;
  if (scope.rounds < scope.nextLook) return;
  scope.nextLook = scope.rounds + ROUNDS_PER_LOOK;
  scope.guard(scope);
}

/** Counts the rounds of one pass over a text, which are much shorter than others. */
export function countText(scope: Scope, text: string): void {
  countRounds(scope, text.length >> 3);
}

/** `current` is what field paths start from (`$$CURRENT`); the result is `undefined` for missing. */
export type Evaluate = (current: unknown, scope: Scope) => unknown;

export interface Compiled {
  readonly evaluate: Evaluate;
  /** The value is the same for every document. */
  readonly constant: boolean;
}

/** The expression compiler, as operators see it. */
export interface Compiler {
  compile(expression: unknown): Compiled;
  /** A compiler that also knows the named variables, and the slots where the operator puts their values. */
  bind(names: readonly string[]): { compiler: Compiler; slots: readonly number[] };
}

/** Compiles one operator of the expression language from its operand. */
export type ExpressionOperator = (operand: unknown, compiler: Compiler, name: string) => Compiled;

export type OperatorTable = Readonly<Record<string, ExpressionOperator>>;

function openScopeWith(now: Date, guard: (scope: Scope) => void, nextLook: number): Scope {
  return { root: {}, vars: [], now, guard, rounds: 0, nextLook };
}

/** A fresh scope for a run over documents. */
export function openScope(environment: { readonly now: Date | null }, check = unlimited): Scope {
  return openScopeWith(environment.now ?? new Date(), openGuard(check), ROUNDS_PER_LOOK);
}

/** For reading the values of constants and for filters without expressions. */
export const NO_SCOPE: Scope = openScope({ now: new Date(0) });

/** More work than this is left to the run, where time is limited. */
const FOLDED_ROUNDS = 1000;

function refuseToFold(): void {
  throw tooLong();
}

/** A compiled expression that is always this value. */
export function constant(value: unknown): Compiled {
  return { evaluate: () => value, constant: true };
}

/**
 * Evaluates a constant expression once. One that fails, or takes long, stays as it is: it may stand in a branch never
 * taken.
 */
export function fold(evaluate: Evaluate, parts: readonly (Compiled | undefined)[]): Compiled {
  if (!parts.every((part) => part === undefined || part.constant)) return { evaluate, constant: false };
  try {
    return constant(evaluate({}, openScopeWith(NO_SCOPE.now, refuseToFold, FOLDED_ROUNDS)));
  } catch (error) {
    if (error instanceof EngineError) return { evaluate, constant: false };
    throw error;
  }
}

/** The operand as a list of arguments: an array's items, or the operand alone. */
export function compileArguments(
  operand: unknown,
  compiler: Compiler,
  name: string,
  least: number,
  most: number,
): Compiled[] {
  const list: unknown[] = Array.isArray(operand) ? operand : [operand];
  if (list.length < least || list.length > most) {
    const expected =
      least === most
        ? `exactly ${String(least)} arguments`
        : `at least ${String(least)} arguments, and at most ${most === Infinity ? 'any number' : String(most)}`;
    throw refusal(
      least === most ? 16020 : 28667,
      `Expression ${name} takes ${expected}. ${String(list.length)} were passed in.`,
    );
  }
  return list.map((item) => compiler.compile(item));
}

/** An operator of one argument. */
export function unary(apply: (value: unknown, scope: Scope) => unknown): ExpressionOperator {
  return (operand, compiler, name) => {
    const [argument] = compileArguments(operand, compiler, name, 1, 1) as [Compiled];
    const { evaluate } = argument;
    return fold((current, scope) => apply(evaluate(current, scope), scope), [argument]);
  };
}

/** An operator of two arguments. */
export function binary(apply: (a: unknown, b: unknown, scope: Scope) => unknown): ExpressionOperator {
  return (operand, compiler, name) => {
    const parts = compileArguments(operand, compiler, name, 2, 2) as [Compiled, Compiled];
    const [first, second] = [parts[0].evaluate, parts[1].evaluate];
    return fold((current, scope) => apply(first(current, scope), second(current, scope), scope), parts);
  };
}

/** An operator of a list of arguments, all evaluated. */
export function variadic(
  apply: (values: unknown[], scope: Scope) => unknown,
  least = 0,
  most = Infinity,
): ExpressionOperator {
  return (operand, compiler, name) => {
    const parts = compileArguments(operand, compiler, name, least, most);
    const evaluates = parts.map((part) => part.evaluate);
    return fold(
      (current, scope) =>
        apply(
          evaluates.map((evaluate) => evaluate(current, scope)),
          scope,
        ),
      parts,
    );
  };
}

/** The fields of an operand that must be a document of named arguments. */
export function namedOperand(
  operand: unknown,
  name: string,
  required: readonly string[],
  optional: readonly string[],
): Doc {
  if (!isDocument(operand)) throw failedToParse(`${name} only supports an object as its argument`);
  for (const key of Object.keys(operand)) {
    if (!required.includes(key) && !optional.includes(key)) {
      throw failedToParse(`${name} found an unknown argument: ${key}`);
    }
  }
  for (const key of required) {
    if (!Object.hasOwn(operand, key)) throw failedToParse(`${name} requires '${key}' to be specified`);
  }
  return operand;
}

/** An operator of named arguments, all evaluated; absent optional ones are `undefined`. */
export function named(
  required: readonly string[],
  optional: readonly string[],
  apply: (values: Readonly<Record<string, unknown>>, given: ReadonlySet<string>, scope: Scope) => unknown,
): ExpressionOperator {
  return (operand, compiler, name) => {
    const fields = namedOperand(operand, name, required, optional);
    const names = Object.keys(fields);
    const given = new Set(names);
    const parts = names.map((key) => compiler.compile(fields[key]));
    return fold((current, scope) => {
      const values: Record<string, unknown> = {};
      names.forEach((key, i) => (values[key] = parts[i]!.evaluate(current, scope)));
      return apply(values, given, scope);
    }, parts);
  };
}
