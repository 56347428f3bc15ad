import { presentOperator } from '../../../src/features/operators/list-operators.js';
import { setOperatorPassword } from '../../../src/features/operators/operator-sessions.js';
import { secret } from '../../shell/command.js';
import { readNewPassword } from '../../shell/read-secret.js';
import { defineOperatorCommand } from './present.js';

export default defineOperatorCommand({
  details: 'Ends every session of the operator and every token, in running servers within a second.',
  examples: [
    'bsvc operator set-password ann@example.com',
    'bsvc operator set-password ann@example.com --password-stdin < password.txt',
  ],
  audited: true,
  parameters: { password: secret('password', 'the new password, 6 to 72 bytes') },
  async run(context, { app, operator, password: source }) {
    await setOperatorPassword(app, operator, await readNewPassword(context, source, 'New password'));
    const shown = presentOperator(operator);
    return {
      json: shown,
      quiet: shown.id,
      text: () => `Operator ${shown.email} has a new password; all sessions and tokens have ended.`,
    };
  },
});
