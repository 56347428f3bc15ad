import { presentOperator } from '../../../src/features/operators/list-operators.js';
import { setOperatorPassword } from '../../../src/features/operators/operator-sessions.js';
import { requireOperatorNamed } from '../../../src/features/operators/remove-operator.js';
import { defineCommand, secret } from '../../shell/command.js';
import { readNewPassword } from '../../shell/read-secret.js';
import { operatorArgument } from './present.js';

export default defineCommand({
  details: 'Ends every session of the operator and every token, in running servers within a second.',
  examples: [
    'bsvc operator set-password ann@example.com',
    'bsvc operator set-password ann@example.com --password-stdin < password.txt',
  ],
  audited: true,
  parameters: { operator: operatorArgument, password: secret('password', 'the new password, 6 to 72 bytes') },
  async run(context, { operator: named, password: source }) {
    const app = await context.app();
    const operator = await requireOperatorNamed(app, named);
    await setOperatorPassword(app, operator, await readNewPassword(context, source, 'New password'));
    const shown = presentOperator(operator);
    return {
      json: shown,
      quiet: shown.id,
      text: () => `Operator ${shown.email} has a new password; all sessions and tokens have ended.`,
    };
  },
});
