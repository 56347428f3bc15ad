import type { Doc } from '../../codec/document.js';
import { badValue } from '../../errors.js';
import type { Collation } from '../../query/collation/collation.js';
import { compileExpression, type ExpressionContext, openExpressionContext } from '../../query/expression.js';
import { openScope } from '../../query/operators/operator.js';

/**
 * Reads how a command wants its filters and expressions understood: by its collation, and with the variables of its
 * `let` as fixed values for `$$name`. Undefined when it says nothing.
 */
export function readVariables(given: Doc | undefined, collation: Collation | null): ExpressionContext | undefined {
  const names = given === undefined ? [] : Object.keys(given);
  if (names.length === 0 && collation === null) return undefined;
  const environment = { ...openExpressionContext(), collation };
  const scope = openScope(environment);
  const constants = new Map(
    names.map((name) => {
      if (!/^[a-z\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*$/.test(name)) {
        throw badValue(`'${name}' starts with an invalid character for a user variable name`);
      }
      return [name, compileExpression(given![name], environment).evaluate({}, scope)] as const;
    }),
  );
  return { ...environment, constants };
}
