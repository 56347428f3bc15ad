import { cell } from '../format.js';
import { pathTo } from '../api-paths.js';
import { useLoad } from '../load.js';
import { CrudScreen } from '../parts/crud-screen.js';
import { place } from '../routes.js';

const PATH = pathTo('/api/admin/settings');

/** The settings as the process that answers has them. They are changed where it is started. */
export function ServerSettings() {
  const list = useLoad(PATH);
  const { query } = place.value;
  const [wanted, from] = [(query.get('name') ?? '').toLowerCase(), query.get('from')];
  const shown = list.data?.items.filter(
    ({ env, text, source }) =>
      (env + text).toLowerCase().includes(wanted) && (from === null || (source !== 'default') === (from === 'set')),
  );
  return (
    <CrudScreen
      title="Server settings"
      count={list.data?.items.length}
      filters={[
        { name: 'name', label: 'Name or description contains' },
        {
          name: 'from',
          label: 'Which',
          choices: [
            ['set', 'changed from the default'],
            ['default', 'defaults'],
          ],
        },
      ]}
      list={{ ...list, data: shown ? { items: shown } : null }}
      keyOf={({ env }) => env}
      empty="No settings match your filter."
      columns={[
        { name: 'Setting', show: ({ env }) => <code>{env}</code> },
        {
          name: 'Value',
          show: ({ value }) => (value === null ? <span class="muted">not set</span> : cell(String(value), 60)),
        },
        {
          name: 'From',
          show: ({ source }) =>
            source === 'default' ? <span class="muted">default</span> : <span class="tag plain">{source}</span>,
        },
        { name: 'Meaning', show: ({ text }) => <span title={text}>{text}</span> },
      ]}
    >
      <p class="muted">Settings are read at startup: from flags, the environment or a file. Secrets are masked.</p>
    </CrudScreen>
  );
}
