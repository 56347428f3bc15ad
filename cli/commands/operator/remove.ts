import { presentOperator } from '../../../src/features/operators/list-operators.js';
import { removeOperator } from '../../../src/features/operators/remove-operator.js';
import { defineOperatorCommand } from './present.js';

export default defineOperatorCommand({
  details: 'Its tokens end at once, in running servers within a second. Projects stay as they are.',
  examples: ['bsvc operator remove ann@example.com', 'bsvc operator remove ann@example.com --yes'],
  audited: true,
  destroys: ({ operator }) => ({ what: `Removes operator ${operator.email}.`, name: operator.email }),
  async run(_context, { app, operator }) {
    await removeOperator(app, operator);
    const shown = presentOperator(operator);
    return { json: shown, quiet: shown.id, text: () => `Removed operator ${shown.email}.` };
  },
});
