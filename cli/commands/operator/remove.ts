import { presentOperator } from '../../../src/features/operators/list-operators.js';
import { removeOperator, requireOperatorNamed } from '../../../src/features/operators/remove-operator.js';
import { defineCommand } from '../../shell/command.js';
import { confirmByName, requireConfirmable, yesOption } from '../../ask/confirm.js';
import { operatorArgument } from './present.js';

export default defineCommand({
  details: 'Its tokens end at once, in running servers within a second. Projects stay as they are.',
  examples: ['bsvc operator remove ann@example.com', 'bsvc operator remove ann@example.com --yes'],
  audited: true,
  parameters: { operator: operatorArgument, yes: yesOption },
  async run(context, { operator: named, yes }) {
    requireConfirmable(context, yes);
    const app = await context.app();
    const operator = await requireOperatorNamed(app, named);
    await confirmByName(context, yes, `Removes operator ${operator.email}.`, operator.email);
    await removeOperator(app, operator);
    const shown = presentOperator(operator);
    return { json: shown, quiet: shown.id, text: () => `Removed operator ${shown.email}.` };
  },
});
