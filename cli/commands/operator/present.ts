import { listOperators, type presentOperator } from '../../../src/features/operators/list-operators.js';
import { invalid } from '../../../src/errors.js';
import type { App } from '../../../src/app.js';
import type { Operator } from '../../../src/features/access/operator.js';
import { requireOperatorNamed } from '../../../src/features/operators/remove-operator.js';
import { pickOne } from '../../ask/choose-project.js';
import { argument, defineCommandOn } from '../../shell/command.js';

/** All operators; 400 NO_OPERATOR when there is none. */
export async function requireSomeOperators(app: App): Promise<Operator[]> {
  const operators = await listOperators(app);
  if (operators.length > 0) return operators;
  throw invalid('NO_OPERATOR', 'There is no operator yet. Add one with "bsvc operator add --email <address>".');
}

const operatorArgument = argument('operator', 'e-mail address or id of the operator', {
  ask: (context) =>
    pickOne(context, 'The argument <operator> is missing', 'Which operator?', async (app) =>
      (await requireSomeOperators(app)).map(({ _id, email, role }) => ({
        name: email,
        value: _id.toHexString(),
        description: role,
      })),
    ),
});

/** `defineCommand` for work on one operator, picked from a list at a terminal: with `app` and `operator`. */
export const defineOperatorCommand = defineCommandOn({ operator: operatorArgument }, async (context, { operator }) => {
  const app = await context.app();
  return { app, operator: await requireOperatorNamed(app, operator) };
});

/** Which projects an operator sees. */
export function presentSeen({ projects }: ReturnType<typeof presentOperator>): string {
  return projects ? `only ${projects.join(', ')}` : 'all projects';
}
