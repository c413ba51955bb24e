// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Type definitions, geometry, networking and what other parts share (Part 3, Part 5, Part 8, Part 22).

use crate::generated::enums::{AxisScaleEnumeration, ManAddrIfSubtype, MessageSecurityMode, StructureType};
use taktwerk_types::{ByteString, ExpandedNodeId, LocalizedText, NodeId, QualifiedName, UaString, Variant};

structure! {
    /// `StructureDefinition` (DataType i=99).
    pub struct StructureDefinition = 99, 122 {
        default_encoding_id: NodeId,
        base_data_type: NodeId,
        structure_type: StructureType,
        fields: Vec<StructureField>,
    }
}

structure! {
    /// `EnumDefinition` (DataType i=100).
    pub struct EnumDefinition = 100, 123 {
        fields: Vec<EnumField>,
    }
}

structure! {
    /// `StructureField` (DataType i=101).
    pub struct StructureField = 101, 14844 {
        name: UaString,
        description: LocalizedText,
        data_type: NodeId,
        value_rank: i32,
        array_dimensions: Vec<u32>,
        max_string_length: u32,
        is_optional: bool,
    }
}

structure! {
    /// `EnumField` (DataType i=102).
    pub struct EnumField = 102, 14845 {
        value: i64,
        display_name: LocalizedText,
        description: LocalizedText,
        name: UaString,
    }
}

structure! {
    /// `Argument` (DataType i=296).
    pub struct Argument = 296, 298 {
        name: UaString,
        data_type: NodeId,
        value_rank: i32,
        array_dimensions: Vec<u32>,
        description: LocalizedText,
    }
}

structure! {
    /// `Range` (DataType i=884).
    pub struct Range = 884, 886 {
        low: f64,
        high: f64,
    }
}

structure! {
    /// `EUInformation` (DataType i=887).
    pub struct EUInformation = 887, 889 {
        namespace_uri: UaString,
        unit_id: i32,
        display_name: LocalizedText,
        description: LocalizedText,
    }
}

structure! {
    /// `EnumValueType` (DataType i=7594).
    pub struct EnumValueType = 7594, 8251 {
        value: i64,
        display_name: LocalizedText,
        description: LocalizedText,
    }
}

structure! {
    /// `TimeZoneDataType` (DataType i=8912).
    pub struct TimeZoneDataType = 8912, 8917 {
        offset: i16,
        daylight_saving_in_offset: bool,
    }
}

structure! {
    /// `EndpointUrlListDataType` (DataType i=11943).
    pub struct EndpointUrlListDataType = 11943, 11957 {
        endpoint_url_list: Vec<UaString>,
    }
}

structure! {
    /// `AxisInformation` (DataType i=12079).
    pub struct AxisInformation = 12079, 12089 {
        engineering_units: EUInformation,
        eu_range: Range,
        title: LocalizedText,
        axis_scale_type: AxisScaleEnumeration,
        axis_steps: Vec<f64>,
    }
}

structure! {
    /// `XVType` (DataType i=12080).
    pub struct XVType = 12080, 12090 {
        x: f64,
        value: f32,
    }
}

structure! {
    /// `ComplexNumberType` (DataType i=12171).
    pub struct ComplexNumberType = 12171, 12181 {
        real: f32,
        imaginary: f32,
    }
}

structure! {
    /// `DoubleComplexNumberType` (DataType i=12172).
    pub struct DoubleComplexNumberType = 12172, 12182 {
        real: f64,
        imaginary: f64,
    }
}

structure! {
    /// `KeyValuePair` (DataType i=14533).
    pub struct KeyValuePair = 14533, 14846 {
        key: QualifiedName,
        value: Variant,
    }
}

structure! {
    /// `SimpleTypeDescription` (DataType i=15005).
    pub struct SimpleTypeDescription = 15005, 15421 {
        data_type_id: NodeId,
        name: QualifiedName,
        base_data_type: NodeId,
        built_in_type: u8,
    }
}

structure! {
    /// `UABinaryFileDataType` (DataType i=15006).
    pub struct UABinaryFileDataType = 15006, 15422 {
        namespaces: Vec<UaString>,
        structure_data_types: Vec<StructureDescription>,
        enum_data_types: Vec<EnumDescription>,
        simple_data_types: Vec<SimpleTypeDescription>,
        schema_location: UaString,
        file_header: Vec<KeyValuePair>,
        body: Variant,
    }
}

structure! {
    /// `StructureDescription` (DataType i=15487).
    pub struct StructureDescription = 15487, 126 {
        data_type_id: NodeId,
        name: QualifiedName,
        structure_definition: StructureDefinition,
    }
}

structure! {
    /// `EnumDescription` (DataType i=15488).
    pub struct EnumDescription = 15488, 127 {
        data_type_id: NodeId,
        name: QualifiedName,
        enum_definition: EnumDefinition,
        built_in_type: u8,
    }
}

structure! {
    /// `EndpointType` (DataType i=15528).
    pub struct EndpointType = 15528, 15671 {
        endpoint_url: UaString,
        security_mode: MessageSecurityMode,
        security_policy_uri: UaString,
        transport_profile_uri: UaString,
    }
}

structure! {
    /// `EndpointDataType` (DataType i=15557).
    pub struct EndpointDataType = 15557, 16544 {
        name: UaString,
        record_properties: Vec<KeyValuePair>,
        discovery_urls: Vec<UaString>,
        network_name: UaString,
        port: u16,
    }
}

structure! {
    /// `ServerEndpointDataType` (DataType i=15558).
    pub struct ServerEndpointDataType = 15558, 16545 {
        name: UaString,
        record_properties: Vec<KeyValuePair>,
        discovery_urls: Vec<UaString>,
        network_name: UaString,
        port: u16,
        endpoint_urls: Vec<UaString>,
        security_setting_names: Vec<UaString>,
        transport_profile_uri: UaString,
        user_token_setting_names: Vec<UaString>,
        reverse_connect_urls: Vec<UaString>,
    }
}

structure! {
    /// `RationalNumber` (DataType i=18806).
    pub struct RationalNumber = 18806, 18815 {
        numerator: i32,
        denominator: u32,
    }
}

structure! {
    /// `ThreeDVector` (DataType i=18808).
    pub struct ThreeDVector = 18808, 18817 {
        x: f64,
        y: f64,
        z: f64,
    }
}

structure! {
    /// `ThreeDCartesianCoordinates` (DataType i=18810).
    pub struct ThreeDCartesianCoordinates = 18810, 18819 {
        x: f64,
        y: f64,
        z: f64,
    }
}

structure! {
    /// `ThreeDOrientation` (DataType i=18812).
    pub struct ThreeDOrientation = 18812, 18821 {
        a: f64,
        b: f64,
        c: f64,
    }
}

structure! {
    /// `ThreeDFrame` (DataType i=18814).
    pub struct ThreeDFrame = 18814, 18823 {
        cartesian_coordinates: ThreeDCartesianCoordinates,
        orientation: ThreeDOrientation,
    }
}

structure! {
    /// `LldpManagementAddressTxPortType` (DataType i=18953).
    pub struct LldpManagementAddressTxPortType = 18953, 19079 {
        address_subtype: u32,
        man_address: UaString,
        tx_enable: bool,
        addr_len: u32,
        if_subtype: ManAddrIfSubtype,
        if_id: u32,
    }
}

structure! {
    /// `LldpManagementAddressType` (DataType i=18954).
    pub struct LldpManagementAddressType = 18954, 19080 {
        address_subtype: u32,
        address: UaString,
        if_subtype: ManAddrIfSubtype,
        if_id: u32,
    }
}

structure! {
    /// `LldpTlvType` (DataType i=18955).
    pub struct LldpTlvType = 18955, 19081 {
        tlv_type: u32,
        tlv_info: ByteString,
    }
}

structure! {
    /// `CurrencyUnitType` (DataType i=23498).
    pub struct CurrencyUnitType = 23498, 23507 {
        numeric_code: i16,
        exponent: i8,
        alphabetic_code: UaString,
        currency: LocalizedText,
    }
}

structure! {
    /// `NumberRange` (DataType i=23903).
    pub struct NumberRange = 23903, 24250 {
        low: Variant,
        high: Variant,
    }
}

structure! {
    /// `PortableQualifiedName` (DataType i=24105).
    pub struct PortableQualifiedName = 24105, 24108 {
        namespace_uri: UaString,
        name: UaString,
    }
}

structure! {
    /// `PortableNodeId` (DataType i=24106).
    pub struct PortableNodeId = 24106, 24109 {
        namespace_uri: UaString,
        identifier: NodeId,
    }
}

structure! {
    /// `UnsignedRationalNumber` (DataType i=24107).
    pub struct UnsignedRationalNumber = 24107, 24110 {
        numerator: u32,
        denominator: u32,
    }
}

structure! {
    /// `PriorityMappingEntryType` (DataType i=25220).
    pub struct PriorityMappingEntryType = 25220, 25239 {
        mapping_uri: UaString,
        priority_label: UaString,
        priority_value_pcp: u8,
        priority_value_dscp: u32,
    }
}

structure! {
    /// `BitFieldDefinition` (DataType i=32421).
    pub struct BitFieldDefinition = 32421, 32422 {
        name: UaString,
        description: LocalizedText,
        reserved: bool,
        starting_bit_position: u32,
        ending_bit_position: u32,
    }
}

structure! {
    /// `AnnotationDataType` (DataType i=32434).
    pub struct AnnotationDataType = 32434, 32560 {
        annotation: UaString,
        discipline: UaString,
        uri: UaString,
    }
}

structure! {
    /// `LinearConversionDataType` (DataType i=32435).
    pub struct LinearConversionDataType = 32435, 32561 {
        initial_addend: f32,
        multiplicand: f32,
        divisor: f32,
        final_addend: f32,
    }
}

structure! {
    /// `QuantityDimension` (DataType i=32438).
    pub struct QuantityDimension = 32438, 32562 {
        mass_exponent: i8,
        length_exponent: i8,
        time_exponent: i8,
        electric_current_exponent: i8,
        amount_of_substance_exponent: i8,
        luminous_intensity_exponent: i8,
        absolute_temperature_exponent: i8,
        dimensionless_exponent: i8,
    }
}

structure! {
    /// `ReferenceDescriptionDataType` (DataType i=32659).
    pub struct ReferenceDescriptionDataType = 32659, 32661 {
        source_node: NodeId,
        reference_type: NodeId,
        is_forward: bool,
        target_node: ExpandedNodeId,
    }
}

structure! {
    /// `ReferenceListEntryDataType` (DataType i=32660).
    pub struct ReferenceListEntryDataType = 32660, 32662 {
        reference_type: NodeId,
        is_forward: bool,
        target_node: ExpandedNodeId,
    }
}
