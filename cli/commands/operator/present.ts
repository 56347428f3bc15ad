import { listOperators, type presentOperator } from '../../../src/features/operators/list-operators.js';
import { invalid } from '../../../src/errors.js';
import { pickOne } from '../../ask/choose-project.js';
import { argument } from '../../shell/command.js';

/** The argument of commands about one operator; picked from a list at a terminal. */
export const operatorArgument = argument('operator', 'e-mail address or id of the operator', {
  ask: (context) =>
    pickOne(context, 'The argument <operator> is missing', 'Which operator?', async (app) => {
      const operators = await listOperators(app);
      if (operators.length === 0) {
        throw invalid('NO_OPERATOR', 'There is no operator yet. Add one with "bsvc operator add --email <address>".');
      }
      return operators.map(({ _id, email, role }) => ({ name: email, value: _id.toHexString(), description: role }));
    }),
});

/** Which projects an operator sees. */
export function presentSeen({ projects }: ReturnType<typeof presentOperator>): string {
  return projects ? `only ${projects.join(', ')}` : 'all projects';
}
