import { presentSettings } from '../../src/config/config.js';
import { defineCommand } from '../shell/command.js';

export default defineCommand({
  details: 'Precedence: flag, environment, env file, default. Secrets are masked.',
  examples: ['bsvc settings', 'bsvc settings --json --env-file production.env'],
  run(context) {
    const { config, sources } = context.settings();
    const rows = presentSettings(config, sources);
    return {
      json: rows,
      quiet: rows.map(({ env, value }) => `${env}=${value ?? ''}`),
      text: (view) =>
        view.table(
          ['setting', 'value', 'from', 'meaning'],
          rows.map(({ env, value, source, text }) => [env, value, source, text]),
          { prose: true },
        ),
    };
  },
});
