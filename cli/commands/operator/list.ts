import { listOperators, presentOperator } from '../../../src/features/operators/list-operators.js';
import { defineCommand } from '../../shell/command.js';
import { presentList } from '../../view/present-list.js';
import { presentSeen } from './present.js';

export default defineCommand({
  examples: ['bsvc operator list', 'bsvc operator list --json'],
  async run(context) {
    const operators = (await listOperators(await context.app())).map(presentOperator);
    return presentList(operators, {
      name: ({ id }) => id,
      empty: 'No operators yet. Add one with: bsvc operator add --email <address>',
      head: ['id', 'e-mail', 'role', 'sees', 'added'],
      row: (operator) => [operator.id, operator.email, operator.role, presentSeen(operator), operator.createdAt],
    });
  },
});
