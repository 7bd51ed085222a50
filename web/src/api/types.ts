/** The answers of the console's HTTP API, as src/barnabas/console/README.md lists them. */

export type Maybe<T> = T | null;

export interface Session {
  user: Maybe<string>;
  read_only: boolean;
  csrf: string;
  login: { required: boolean; methods: ('password' | 'broker' | 'oidc')[] };
  cluster: { name: Maybe<string>; bootstrap: Maybe<string> };
  version: Maybe<string>;
  age_limit_s: number;
  features: { telemetry: boolean; streams: boolean; alerts: boolean; metrics: boolean };
}

export interface Page<T> {
  total: number;
  items: T[];
  taken_ms: Maybe<number>;
}

export interface Series {
  times_ms: number[];
  records_per_s?: Maybe<number>[];
  bytes_in_per_s?: Maybe<number>[];
  bytes_out_per_s?: Maybe<number>[];
  lag?: Maybe<number>[];
  lag_s?: Maybe<number>[];
  produce_p99_s?: Maybe<number>[];
  rows_per_s?: Maybe<number>[];
  batch_ms?: Maybe<number>[];
  state_bytes?: Maybe<number>[];
}

export type GroupStatus = 'ok' | 'behind' | 'stalled' | 'stopped' | 'rewound' | 'unknown';
export type Trouble = 'offline' | 'under_min_isr' | 'under_replicated';

export interface BrokerRow {
  id: number;
  address: Maybe<string>;
  rack: Maybe<string>;
  state: string;
  is_controller: boolean;
  leaders: Maybe<number>;
  replicas: Maybe<number>;
  in_sync: Maybe<number>;
  disk_used_ratio: Maybe<number>;
  disk_free_bytes: Maybe<number>;
  records_per_s: Maybe<number>;
  bytes_in_per_s: Maybe<number>;
  bytes_out_per_s: Maybe<number>;
  loop_busy_ratio: Maybe<number>;
  connections: Maybe<number>;
  version: Maybe<string>;
  silence: Maybe<string>;
}

export interface TopicRow {
  name: string;
  is_internal: boolean;
  partitions: number;
  replication_factor: number;
  records: Maybe<number>;
  size_bytes: Maybe<number>;
  records_per_s: Maybe<number>;
  bytes_per_s: Maybe<number>;
  groups: number | string[];
  trouble: Maybe<Trouble>;
}

export interface GroupRow {
  name: string;
  type: Maybe<string>;
  state: string;
  status: GroupStatus;
  members: Maybe<number>;
  topics: string[] | number;
  lag: Maybe<number>;
  lag_s: Maybe<number>;
  eta_s: Maybe<number | 'never'>;
  retention_margin_s: Maybe<number>;
  read_per_s: Maybe<number>;
  lag_trend: number[];
}

export interface Overview {
  taken_ms: Maybe<number>;
  took_ms: Maybe<number>;
  interval_s: number;
  cluster_id: Maybe<string>;
  controller: Maybe<number>;
  feature_level: Maybe<number>;
  health: { verdict: string; reasons: string[]; warnings: string[] };
  /** What could not be collected this time, and why. */
  troubles?: string[];
  throughput: {
    records_per_s: Maybe<number>;
    bytes_in_per_s: Maybe<number>;
    bytes_out_per_s: Maybe<number>;
    produce_p99_s: Maybe<number>;
    fetch_p99_s: Maybe<number>;
  };
  disk: { used_ratio: Maybe<number>; full_in_s: Maybe<number> };
  counts: Record<
    'brokers' | 'brokers_up' | 'topics' | 'partitions' | 'groups' | 'members',
    Maybe<number>
  >;
  partitions: Record<
    'offline' | 'under_min_isr' | 'under_replicated' | 'reassigning' | 'not_led_as_preferred',
    Maybe<number>
  >;
  groups_by_status: Partial<Record<GroupStatus, number>>;
  worst_groups: GroupRow[];
  hottest_topics: TopicRow[];
  brokers: BrokerRow[];
  history: Series;
}

export interface ConfigRow {
  name: string;
  value: Maybe<string>;
  default: Maybe<string>;
  source: string;
  is_default: boolean;
  is_sensitive: boolean;
  is_read_only: boolean;
  documentation: Maybe<string>;
  type: Maybe<string>;
}

export interface SlowRequest {
  at_ms: number;
  api: string;
  client_id: Maybe<string>;
  host: Maybe<string>;
  bytes: Maybe<number>;
  took_ms: number;
  parts: Partial<Record<'loop' | 'handler' | 'disk' | 'peers' | 'sending', Maybe<number>>>;
}

export interface Broker extends BrokerRow {
  partitions: Record<'leaders' | 'replicas' | 'under_replicated', Maybe<number>>;
  quorum: Maybe<{ role: Maybe<string>; lag: Maybe<number>; last_contact_ms: Maybe<number> }>;
  slow_requests: Maybe<SlowRequest[]>;
  restart_safe: Maybe<{ safe: Maybe<boolean>; reasons: string[] }>;
  configs: Maybe<ConfigRow[]>;
  configs_failure?: Maybe<string>;
  history: Maybe<Series>;
}

export interface HeatMap {
  topics: string[];
  brokers: number[];
  cells: [topic: number, broker: number, partition: number, value: Maybe<number>, leads: boolean][];
}

export interface Transaction {
  transactional_id: string;
  producer_id: number;
  state: string;
  topics: string[];
  since_ms: Maybe<number>;
  hanging: boolean;
}

export interface TopicPartition {
  number: number;
  leader: Maybe<number>;
  replicas: number[];
  in_sync: number[];
  offline: number[];
  start: Maybe<number>;
  end: Maybe<number>;
  size_bytes: Maybe<number>;
  records_per_s: Maybe<number>;
}

export interface Topic extends TopicRow {
  partition_list: TopicPartition[];
  group_list: { name: string; lag: Maybe<number>; lag_s: Maybe<number>; status: GroupStatus }[];
  history: Maybe<Series>;
}

export interface GroupPartition {
  topic: string;
  partition: number;
  committed: Maybe<number>;
  end: Maybe<number>;
  lag: Maybe<number>;
  lag_s: Maybe<number>;
  read_per_s: Maybe<number>;
  retention_margin_s: Maybe<number>;
  lost_records: number;
  status: GroupStatus;
  member_id: Maybe<string>;
  client_id: Maybe<string>;
}

export interface Member {
  member_id: string;
  client_id: string;
  instance_id: Maybe<string>;
  host: string;
  partitions: { topic: string; partition: number }[];
}

export interface Group extends GroupRow {
  coordinator: Maybe<number>;
  assignor: Maybe<string>;
  member_list: Member[];
  partition_list: GroupPartition[];
  history: Maybe<Series>;
}

export interface Content {
  encoding: 'json' | 'text' | 'avro' | 'hex' | 'null';
  text: Maybe<string>;
  bytes_base64?: Maybe<string>;
  size_bytes: number;
  truncated: boolean;
  schema?: Maybe<string>;
}

export interface Message {
  topic: string;
  partition: number;
  offset: number;
  timestamp_ms: number;
  timestamp_type: string;
  key: Content;
  value: Content;
  headers: { name: string; value: Content }[];
  size_bytes: number;
  leader_epoch: Maybe<number>;
}

export interface OffsetChange {
  topic: string;
  partition: number;
  before: Maybe<number>;
  after: Maybe<number>;
  change: Maybe<number>;
}

export interface Move {
  topic: string;
  partition: number;
  before: number[];
  after: number[];
  bytes: Maybe<number>;
}

export interface Plan {
  changes: Move[];
  bytes_to_move: Maybe<number>;
  moves: number;
  brokers: Record<
    string,
    Record<'replicas_before' | 'replicas_after' | 'leaders_before' | 'leaders_after', number>
  >;
}

export interface Moving {
  topic: string;
  partition: number;
  adding: number[];
  removing: number[];
  bytes_left: Maybe<number>;
}

export interface StreamRow {
  name: string;
  query_id: Maybe<string>;
  run_id: Maybe<string>;
  state: string;
  since_ms: Maybe<number>;
  restarts: Maybe<number>;
  rows_per_s: Maybe<number>;
  input_per_s: Maybe<number>;
  lag: Maybe<number>;
  batch_ms: Maybe<number>;
  state_bytes: Maybe<number>;
  state_rows: Maybe<number>;
  last_error: Maybe<string>;
  sources: Maybe<string[]>;
  sink: Maybe<string>;
  updated_ms: Maybe<number>;
}

export interface Telemetry {
  lake: string;
  failure?: Maybe<string>;
  updated_ms: Maybe<number>;
  summary: {
    gpus: Maybe<number>;
    idle_hours: Maybe<number>;
    waste: Maybe<number>;
    currency: Maybe<string>;
  };
  findings: Record<string, unknown>[];
}

export interface Alerts {
  items: Alert[];
  /** Why the Alertmanager could not be asked. */
  failure?: Maybe<string>;
}

export interface Alert {
  name: string;
  severity: 'critical' | 'warning' | 'info';
  state: 'firing' | 'pending' | 'ok';
  since_ms: Maybe<number>;
  labels: Record<string, string>;
  summary: Maybe<string>;
  value: Maybe<number | string>;
  runbook: Maybe<string>;
  source?: Maybe<string>;
}

export interface Found {
  kind: 'topic' | 'group' | 'broker' | 'page' | 'action';
  name: string;
  url: string;
}
