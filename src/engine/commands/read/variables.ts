import type { Doc } from '../../codec/document.js';
import { badValue } from '../../errors.js';
import { compileExpression, type ExpressionContext, openExpressionContext } from '../../query/expression.js';
import { openScope } from '../../query/operators/operator.js';

/** The variables that a command's `let` defines, as fixed values for `$$name`; undefined when it has none. */
export function readVariables(given: Doc | undefined): ExpressionContext | undefined {
  if (given === undefined) return undefined;
  const names = Object.keys(given);
  if (names.length === 0) return undefined;
  const environment = openExpressionContext();
  const scope = openScope(environment);
  const constants = new Map(
    names.map((name) => {
      if (!/^[a-z\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*$/.test(name)) {
        throw badValue(`'${name}' starts with an invalid character for a user variable name`);
      }
      return [name, compileExpression(given[name], environment).evaluate({}, scope)] as const;
    }),
  );
  return { ...environment, constants };
}
