import { useState } from 'preact/hooks';
import { howMany, number } from '../../format.js';
import { below, type Address } from '../../api-paths.js';
import { useLoad } from '../../load.js';
import { Trouble } from '../../parts/basics.js';
import { Commands, projectWord } from '../../parts/commands.js';
import { Table } from '../../parts/table.js';
import { Usage } from '../../parts/usage.js';

/** Counts every collection, so only when somebody asks. */
export function ProjectUsage({ base }: { base: Address<'/api/projects/{projectId}'> }) {
  const [asked, setAsked] = useState(false);
  const { data, error, loading, reload } = useLoad(asked ? below(base, '/usage') : null);
  return (
    <>
      <h2>Usage</h2>
      {!asked && <button onClick={() => setAsked(true)}>Count what it uses</button>}
      <Trouble error={error} onRetry={reload} />
      {asked && !data && loading && <p class="empty">Counting…</p>}
      {data && (
        <>
          <div class="usages">
            <Usage
              name={howMany(data.documents, 'document')}
              used={data.collections.reduce((sum, { bytes }) => sum + bytes, 0)}
              limit={data.limits.database}
            />
            <Usage name={howMany(data.storage.files, 'file')} used={data.storage.bytes} limit={data.storage.limit} />
            <Usage name="Mails of this month" used={data.mail.used} limit={data.mail.limit} isCount />
            <Usage name="Webhooks" used={data.webhooks} limit={data.limits.webhooks} isCount />
          </div>
          <Table
            label="Documents by collection"
            loading={false}
            rows={data.collections}
            keyOf={({ name }) => name}
            empty="No collections."
            columns={[
              { name: 'Collection', show: ({ name }) => name },
              { name: 'Documents', isNumber: true, show: ({ documents }) => number(documents) },
              { name: 'In the trash', isNumber: true, show: ({ trashed }) => number(trashed) },
            ]}
          />
        </>
      )}
      <Commands cli={`bsvc project usage ${projectWord()}`} path={below(base, '/usage')} />
    </>
  );
}
