import { EngineError, refusal } from '../../errors.js';
import { type Doc, isDocument } from '../value.js';

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
  /** How many rounds those loops have made. */
  rounds: number;
}

/** No honest expression takes this long on one document; meanwhile nothing else in the process runs. */
const DOCUMENT_MS = 1000;

/** Ends what takes too long on a single document, on top of the run's own limits. */
function openGuard(check: () => void): (scope: Scope) => void {
  let root: Doc | undefined;
  let start = 0;
  return (scope) => {
    check();
    if (scope.root !== root) {
      ({ root } = scope);
      start = performance.now();
    } else if (performance.now() - start > DOCUMENT_MS) {
      throw new EngineError(50, 'an expression takes too long on one document');
    }
  };
}

function unlimited(): void {
  // Outside of pipelines only the time of a single document is limited.
}

/** To be called once in each round of a loop over something that a pipeline may have made arbitrarily long. */
export function countRound(scope: Scope): void {
  if ((++scope.rounds & 1023) === 0) scope.guard(scope);
}

/** `current` is what field paths start from (`$$CURRENT`); the result is `undefined` for missing. */
export type Evaluate = (current: unknown, scope: Scope) => unknown;

export interface Compiled {
  readonly evaluate: Evaluate;
  /** The value is the same for every document. */
  readonly constant: boolean;
}

/** What operators see of the expression compiler. */
export interface Compiler {
  compile(expression: unknown): Compiled;
  /** A compiler that also knows the named variables, and the slots where the operator puts their values. */
  bind(names: readonly string[]): { compiler: Compiler; slots: readonly number[] };
}

/** Compiles one operator of the expression language from its operand. */
export type ExpressionOperator = (operand: unknown, compiler: Compiler, name: string) => Compiled;

export type OperatorTable = Readonly<Record<string, ExpressionOperator>>;

/** A fresh scope for a run over documents. */
export function openScope(environment: { readonly now: Date | null }, check = unlimited): Scope {
  return { root: {}, vars: [], now: environment.now ?? new Date(), guard: openGuard(check), rounds: 0 };
}

/** For evaluating what is constant. */
export const NO_SCOPE: Scope = { root: {}, vars: [], now: new Date(0), guard: openGuard(unlimited), rounds: 0 };

export function constant(value: unknown): Compiled {
  return { evaluate: () => value, constant: true };
}

/** Evaluates a constant expression once. One that fails stays as it is: it may stand in a branch never taken. */
export function fold(evaluate: Evaluate, parts: readonly (Compiled | undefined)[]): Compiled {
  if (!parts.every((part) => part === undefined || part.constant)) return { evaluate, constant: false };
  try {
    return constant(evaluate({}, NO_SCOPE));
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
export function unary(apply: (value: unknown) => unknown): ExpressionOperator {
  return (operand, compiler, name) => {
    const [argument] = compileArguments(operand, compiler, name, 1, 1) as [Compiled];
    const { evaluate } = argument;
    return fold((current, scope) => apply(evaluate(current, scope)), [argument]);
  };
}

/** An operator of two arguments. */
export function binary(apply: (a: unknown, b: unknown) => unknown): ExpressionOperator {
  return (operand, compiler, name) => {
    const parts = compileArguments(operand, compiler, name, 2, 2) as [Compiled, Compiled];
    const [first, second] = [parts[0].evaluate, parts[1].evaluate];
    return fold((current, scope) => apply(first(current, scope), second(current, scope)), parts);
  };
}

/** An operator of a list of arguments, all evaluated. */
export function variadic(apply: (values: unknown[]) => unknown, least = 0, most = Infinity): ExpressionOperator {
  return (operand, compiler, name) => {
    const parts = compileArguments(operand, compiler, name, least, most);
    const evaluates = parts.map((part) => part.evaluate);
    return fold((current, scope) => apply(evaluates.map((evaluate) => evaluate(current, scope))), parts);
  };
}

/** The fields of an operand that must be a document of named arguments. */
export function namedOperand(
  operand: unknown,
  name: string,
  required: readonly string[],
  optional: readonly string[],
): Doc {
  if (!isDocument(operand)) throw refusal(9, `${name} only supports an object as its argument`);
  for (const key of Object.keys(operand)) {
    if (!required.includes(key) && !optional.includes(key)) {
      throw refusal(9, `${name} found an unknown argument: ${key}`);
    }
  }
  for (const key of required) {
    if (!Object.hasOwn(operand, key)) throw refusal(9, `${name} requires '${key}' to be specified`);
  }
  return operand;
}

/** An operator of named arguments, all evaluated; absent optional ones are `undefined`. */
export function named(
  required: readonly string[],
  optional: readonly string[],
  apply: (values: Readonly<Record<string, unknown>>, given: ReadonlySet<string>) => unknown,
): ExpressionOperator {
  return (operand, compiler, name) => {
    const fields = namedOperand(operand, name, required, optional);
    const names = Object.keys(fields);
    const given = new Set(names);
    const parts = names.map((key) => compiler.compile(fields[key]));
    return fold((current, scope) => {
      const values: Record<string, unknown> = {};
      names.forEach((key, i) => (values[key] = parts[i]!.evaluate(current, scope)));
      return apply(values, given);
    }, parts);
  };
}
