import { listOperators, presentOperator } from '../../../src/features/operators/list-operators.js';
import { defineCommand } from '../../shell/command.js';
import { presentSeen } from './present.js';

export default defineCommand({
  examples: ['bsvc operator list', 'bsvc operator list --json'],
  parameters: {},
  async run(context) {
    const operators = (await listOperators(await context.app())).map(presentOperator);
    return {
      json: operators,
      quiet: operators.map(({ id }) => id),
      text: (view) =>
        operators.length === 0
          ? 'No operators yet. Add one with: bsvc operator add --email <address>'
          : view.table(
              ['id', 'e-mail', 'role', 'sees', 'added'],
              operators.map((operator) => [
                operator.id,
                operator.email,
                operator.role,
                presentSeen(operator),
                operator.createdAt,
              ]),
            ),
    };
  },
});
