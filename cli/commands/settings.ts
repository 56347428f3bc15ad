import { SETTINGS, type Config, type SettingSource } from '../../src/config/config.js';
import { defineCommand } from '../shell/command.js';

const MASK = '********';

export default defineCommand({
  details: 'Precedence: flag, environment, env file, default. Secrets are masked.',
  examples: ['bsvc settings', 'bsvc settings --json --env-file production.env'],
  run(context) {
    const { config, sources } = context.settings();
    const rows = sources.map((source) => presentSetting(config, source));
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

function presentSetting(config: Config, { name, source }: SettingSource) {
  const { env, secret, text, defaultText } = SETTINGS[name] as {
    env: string;
    secret?: boolean;
    text: string;
    defaultText?: string;
  };
  const value = config[name];
  const shown = source === 'default' ? (defaultText ?? value) : secret ? MASK : value;
  return {
    name,
    env,
    value: typeof shown === 'object' && shown !== null ? JSON.stringify(shown) : shown,
    source,
    text,
  };
}
